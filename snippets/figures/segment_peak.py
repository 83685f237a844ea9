"""The measured peak of a checkpointed chain against the model L/k + k."""

import functools

import torch
from matplotlib.figure import Figure
from snippets.chain_peak import peak
from snippets.figures.phone import subplots
from snippets.figures.theme import Theme

from gradstep import segment_peak

LAYERS = 64
SEGMENTS = [1, 2, 4, 8, 16, 32, 64]


@functools.cache
def measured(segment: int | None = None) -> float:
    """The peak in activations; the layers are too small for a second thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return peak(segment)
    finally:
        torch.set_num_threads(threads)


def draw(theme: Theme) -> Figure:
    """Measured marks on the line of the model, and the chain without checkpoints."""
    figure, axes = subplots(3.6)
    model = [segment_peak(LAYERS, segment) for segment in SEGMENTS]
    smooth = [2 ** (step / 16) for step in range(6 * 16 + 1)]
    line = {"color": theme.muted, "linewidth": 1.6}
    axes.plot(smooth, [LAYERS / k + k for k in smooth], **line)
    found = [measured(segment) for segment in SEGMENTS]
    axes.plot(SEGMENTS, found, "o", color=theme.main, markersize=8)
    axes.axhline(measured(), color=theme.other, linewidth=1.8, linestyle="--")
    axes.text(8, measured() - 5, "no checkpoints", color=theme.other, weight="bold", ha="center")
    axes.text(8, model[3] - 9, "measured: 16", color=theme.main, weight="bold", ha="center")
    axes.text(2.9, 30, "64/k + k", color=theme.text, weight="bold")
    axes.set_xscale("log", base=2)
    axes.set(ylim=(0, 72), xlabel="layers in a segment, k", ylabel="peak (activations)")
    axes.set_xticks(SEGMENTS, [str(segment) for segment in SEGMENTS])
    axes.set_yticks([0, 16, 32, 48, 64])
    axes.minorticks_off()
    figure.tight_layout()
    return figure
