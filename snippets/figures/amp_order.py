"""What is left of an update, clipped before or after unscaling."""

from matplotlib.figure import Figure
from snippets.amp_order import moved
from snippets.figures.phone import subplots
from snippets.figures.theme import Theme

SCALES = [2.0**power for power in range(17)]


def draw(theme: Theme) -> Figure:
    """Both orders against the loss scale, on logarithmic axes."""
    right, wrong = ([moved(first, scale) for scale in SCALES] for first in (True, False))
    figure, axes = subplots(3.6)
    axes.loglog(SCALES, right, "o-", color=theme.main, linewidth=2.4, markersize=5)
    axes.loglog(SCALES, wrong, "s--", color=theme.other, linewidth=1.8, markersize=4.5)
    axes.text(1.6e4, 2.2, "unscale, then clip", color=theme.main, weight="bold", ha="right")
    axes.text(2.5, 4e-4, "clip, then unscale", color=theme.other, weight="bold")
    axes.text(3.4e4, 2e-2, "65,536 times too short", ha="right")
    span = {"arrowstyle": "<->", "color": theme.muted, "shrinkA": 6, "shrinkB": 6}
    axes.annotate("", (SCALES[-1], right[-1]), (SCALES[-1], wrong[-1]), arrowprops=span)
    axes.set(ylim=(6e-6, 12), xlabel="loss scale", ylabel="post-clip norm, unscaled")
    axes.set_xticks([1, 16, 256, 4096, 65536], ["1", "16", "256", "4,096", "65,536"])
    axes.set_yticks([1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10])
    axes.set_yticklabels(["0.00001", "0.0001", "0.001", "0.01", "0.1", "1", "10"])
    axes.minorticks_off()
    figure.tight_layout()
    return figure
