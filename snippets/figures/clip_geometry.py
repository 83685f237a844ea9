"""Five gradients clipped by norm and by value: a ball and a box."""

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Wedge
from snippets.figures import phone
from snippets.figures.theme import Theme

from gradstep import clip_grad_norm_, clip_grad_value_

GRADIENTS = [(3.0, 4.0), (3.2, 1.85), (2.6, 0.65), (0.4, 2.6), (0.22, 0.5)]
LIMIT = 1.0


def clipped(gradient: tuple[float, float], by: str) -> tuple[float, float]:
    """One gradient after the clip that `by` names."""
    parameter = torch.nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor(gradient)
    if by == "norm":
        clip_grad_norm_(parameter, max_norm=LIMIT)
    else:
        clip_grad_value_(parameter, clip_value=LIMIT)
    x, y = parameter.grad.tolist()
    return x, y


def draw(theme: Theme) -> Figure:
    """Two panels, the same gradients in both."""
    figure, (left, right) = phone.subplots(3.6, 1, 2, sharey=True)
    style = {"facecolor": theme.fill, "edgecolor": theme.muted, "linewidth": 1}
    left.add_patch(Wedge((0, 0), LIMIT, 0, 90, **style))
    right.add_patch(Polygon([(0, 0), (LIMIT, 0), (LIMIT, LIMIT), (0, LIMIT)], **style))
    left.set_title("by norm: (0.6, 0.8)", color=theme.main)
    right.set_title("by value: (1, 1)", color=theme.main)
    for axes, by in ((left, "norm"), (right, "value")):
        for gradient in GRADIENTS:
            _arrows(axes, theme, gradient, clipped(gradient, by))
        axes.set(xlim=(0, 3.5), ylim=(0, 4.4), aspect="equal", xlabel="coordinate 1")
        axes.set_xticks(range(4))
        axes.set_yticks(range(5))
        axes.annotate("g = (3, 4)", (3, 4), (-8, 3), textcoords="offset points", ha="right")
    left.set_ylabel("coordinate 2")
    figure.tight_layout(w_pad=1)
    return figure


def _arrows(axes: Axes, theme: Theme, start: tuple[float, float], end: tuple[float, float]) -> None:
    line = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, "mutation_scale": 11}
    if start != end:
        thin = line | {"color": theme.muted, "linewidth": 1, "linestyle": (0, (4, 3))}
        axes.annotate("", start, (0, 0), arrowprops=thin)
        if abs(start[0] * end[1] - start[1] * end[0]) > 1e-3:  # it has left its line
            moved = {"arrowstyle": "-", "color": theme.other, "linestyle": ":", "linewidth": 1.8}
            axes.annotate("", end, start, arrowprops=moved | {"shrinkA": 4, "shrinkB": 2})
    thick = line | {"color": theme.main, "linewidth": 2.4}
    axes.annotate("", end, (0, 0), arrowprops=thick)
