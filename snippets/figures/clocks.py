"""Eight microbatches in three windows, one of them skipped, and the five clocks."""

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from snippets.figures.phone import subplots
from snippets.figures.theme import Theme
from torch import nn

from gradstep import Clocks, Update, updates

TARGETS = [4, 5, 3, 4, 4, 2, 5, 2]  # supervised targets of each microbatch
LENGTH = 3
OVERFLOWING = 4  # the microbatch whose scaled gradient does not fit into float16


def run() -> list[tuple[Update, dict[str, float]]]:
    """The record of each window, and all clocks after it."""
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [(torch.randn(n, 4), torch.randint(3, (n,))) for n in TARGETS]
    batches[OVERFLOWING][0].mul_(1e4)
    scaler, clocks, seen = torch.amp.GradScaler("cpu"), Clocks(), []
    for record in updates(
        model,
        batches,
        optimizer,
        accumulation_steps=LENGTH,
        scaler=scaler,
        autocast=torch.float16,
    ):
        clocks.count(record)
        seen.append((record, clocks.state_dict()))
    return seen


def draw(theme: Theme) -> Figure:
    """Microbatches as boxes in their windows; below, a mark wherever a clock moves."""
    figure, axes = subplots(4.1)
    seen = run()
    rows = {name: -0.6 - row for row, name in enumerate(seen[0][1])}
    for number, targets in enumerate(TARGETS):
        box = {"facecolor": theme.fill, "edgecolor": theme.muted, "linewidth": 1}
        axes.add_patch(Rectangle((number + 0.06, 0), 0.88, 0.8, **box))
        axes.text(number + 0.5, 0.4, str(targets), ha="center", va="center_baseline")
        axes.plot(number + 0.18, rows["microbatches"], "o", color=theme.main, markersize=5)
    start, before = 0, dict.fromkeys(rows, 0)
    for record, clocks in seen:
        end = start + record.microbatches
        _window(axes, theme, record, start, end)
        for name, y in rows.items():
            moved = clocks[name] != before[name]
            if moved and name != "microbatches":
                axes.plot(end - 0.82, y, "D", color=theme.main, markersize=7)
            style = {"weight": "bold"} if moved else {"color": theme.muted}
            axes.text(end - 0.56, y, f"{clocks[name]:g}", va="center_baseline", **style)
        start, before = end, clocks
    for name, y in rows.items():
        axes.axhline(y + 0.5, color=theme.muted, linewidth=0.4)
        axes.text(-3.3, y, name, va="center_baseline")
    axes.text(-3.3, 0.4, "targets in each\nmicrobatch", va="center")
    axes.set(xlim=(-3.4, 8.1), ylim=(-5.1, 2.2))
    axes.axis("off")
    figure.subplots_adjust(0, 0, 1, 1)
    return figure


def _window(axes: Axes, theme: Theme, record: Update, start: int, end: int) -> None:
    colour = theme.main if record.accepted else theme.other
    dash = "-" if record.accepted else (0, (4, 2))
    axes.plot([start + 0.1, end - 0.1], [1.05, 1.05], color=colour, linewidth=2.4, linestyle=dash)
    axes.plot([end, end], [0.9, -5.1], color=theme.muted, linewidth=0.8, linestyle=":")
    word = "accepted" if record.accepted else "skipped"
    label = f"window {record.window}\n{word}"
    middle = (start + end) / 2
    axes.text(middle, 1.2, label, color=colour, weight="bold", ha="center", linespacing=1.15)
