"""The landing page's picture: one bad batch, with and without clipping."""

import math

from matplotlib.figure import Figure
from snippets.bad_batch import train
from snippets.figures import phone
from snippets.figures.theme import Theme

FIRST, BAD, LAST = 125, 150, 200  # the updates shown, and the one with the bad batch


def draw(theme: Theme) -> Figure:
    """Held-out loss of the two runs on one logarithmic axis."""
    free, clipped = train(), train(max_norm=1.0)
    end = next(update for update, loss in enumerate(free) if not math.isfinite(loss))
    figure, axes = phone.subplots(3.3)
    axes.axvline(BAD, color=theme.muted, linewidth=1, linestyle=":")
    axes.semilogy(range(FIRST, LAST), clipped[FIRST:LAST], color=theme.main, linewidth=2.4)
    axes.semilogy(range(FIRST, end), free[FIRST:end], "--", color=theme.other, linewidth=2)
    axes.semilogy(range(BAD, end), free[BAD:end], "o", color=theme.other, markersize=5)
    lost = f"never clipped:\ninfinite after\n{end - BAD + 1} updates"
    axes.text(BAD + 5, 3e3, lost, color=theme.other, weight="bold", linespacing=1.4)
    kept = "clipped to norm 1:\ntraining goes on"
    axes.text(BAD + 4, 0.4, kept, color=theme.main, weight="bold", linespacing=1.4)
    axes.text(BAD - 1, 1.5e6, "the bad batch", color=theme.muted, ha="right")
    axes.set(xlim=(FIRST, LAST), ylim=(0.02, 1e7), xlabel="optimizer update")
    axes.set_ylabel("held-out loss")
    axes.set_yticks([0.1, 1, 10, 100, 1000, 1e4, 1e5, 1e6])
    axes.set_yticklabels(["0.1", "1", "10", "100", "1,000", "10,000", "100,000", "1 million"])
    axes.minorticks_off()
    figure.tight_layout()
    return figure
