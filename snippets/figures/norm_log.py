"""The norms of one training run, before and after clipping."""

from matplotlib.figure import Figure
from snippets.figures import phone
from snippets.figures.theme import Theme
from snippets.norm_log import ADAMW, train

MAX_NORM = 1.0


def draw(theme: Theme) -> Figure:
    """Two panels over the same updates."""
    _, before, after, _ = train(MAX_NORM, **ADAMW)
    figure, (top, bottom) = phone.subplots(5, 2, sharex=True, height_ratios=(3, 2))
    updates = range(len(before))
    bad = [update for update in updates if before[update] > 30]
    top.semilogy(updates, before, color=theme.main, linewidth=1.2)
    top.plot(bad, before[bad], "v", color=theme.other, markersize=8)
    top.annotate(
        "bad batch",
        (bad[0], before[bad[0]]),
        (0, 9),
        textcoords="offset points",
        color=theme.other,
        weight="bold",
        ha="center",
    )
    top.set(ylim=(0.1, 2000), yticks=(0.1, 1, 10, 100, 1000))
    top.set_yticklabels(["0.1", "1", "10", "100", "1,000"])
    top.set_title("before clipping, as returned", loc="left")
    bottom.plot(updates, after, color=theme.main, linewidth=1.2)
    bottom.plot(bad, after[bad], "v", color=theme.other, markersize=8)
    bottom.set(ylim=(0, 1.45), yticks=(0, 0.5, 1), xlim=(0, len(before)))
    bottom.set_title("after clipping: pinned", loc="left")
    bottom.set_xlabel("optimizer update")
    for axes in (top, bottom):
        axes.axhline(MAX_NORM, color=theme.text, linewidth=1, linestyle=(0, (5, 3)))
        axes.set_ylabel("gradient norm")
        axes.minorticks_off()
    figure.align_ylabels()
    bottom.text(len(before) - 4, 1.12, "max_norm = 1", ha="right", va="bottom")
    figure.tight_layout(h_pad=1)
    return figure
