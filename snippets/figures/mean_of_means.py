"""How wrong a mean of microbatch means is, against the imbalance of its counts."""

import torch
from matplotlib.figure import Figure
from snippets.figures.phone import subplots
from snippets.figures.theme import Theme
from torch import Tensor, nn

from gradstep import count_targets

TARGETS = 64
SMALLER = [32, 16, 8, 4, 2, 1]  # targets in the second of two microbatches
DRAWS = 50


def errors(second: int) -> tuple[float, float]:
    """The median relative errors of the gradient: sums over the total, and mean of means."""
    found = torch.tensor([_errors_once(second, seed) for seed in range(DRAWS)])
    by_sums, by_means = found.median(dim=0).values.tolist()
    return by_sums, by_means


def _errors_once(second: int, seed: int) -> tuple[float, float]:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(TARGETS, 4, dtype=torch.float64, generator=generator)
    targets = torch.randint(3, (TARGETS,), generator=generator)
    pieces = [part.split([TARGETS - second, second]) for part in (rows, targets)]
    batches = list(zip(*pieces, strict=True))
    whole = _gradient([(rows, targets)], [1 / TARGETS])
    by_sums = _gradient(batches, [1 / TARGETS] * 2)
    by_means = _gradient(batches, [1 / count_targets(y) / 2 for _, y in batches])
    return _off(by_sums, whole), _off(by_means, whole)


def _gradient(batches: list[tuple[Tensor, Tensor]], factors: list[float]) -> Tensor:
    weight = nn.Parameter(torch.zeros(4, 3, dtype=torch.float64))
    for (rows, targets), factor in zip(batches, factors, strict=True):
        loss_sum = nn.functional.cross_entropy(rows @ weight, targets, reduction="sum")
        (loss_sum * factor).backward()
    return weight.grad


def _off(gradient: Tensor, whole: Tensor) -> float:
    return ((gradient - whole).norm() / whole.norm()).item()


def draw(theme: Theme) -> Figure:
    """The two errors in percent of the gradient's length, over ever more unequal counts."""
    by_sums, by_means = zip(*map(errors, SMALLER), strict=True)
    figure, axes = subplots(3.4)
    places = range(len(SMALLER))
    axes.plot(places, by_means, "s--", color=theme.other, linewidth=1.8, markersize=6)
    axes.plot(places, by_sums, "o-", color=theme.main, linewidth=2.4, markersize=6, clip_on=False)
    axes.text(3.2, 2.5, "mean of means", color=theme.other, weight="bold", ha="right")
    axes.text(5, 0.18, "loss sums over the total", color=theme.main, weight="bold", ha="right")
    axes.set_xticks(places, [f"{TARGETS - n}+{n}" for n in SMALLER])
    axes.set_yticks([0, 1, 2, 3, 4], ["0", "100%", "200%", "300%", "400%"])
    axes.set(ylim=(0, 4.4), xlim=(-0.25, 5.25))
    axes.set_xlabel("supervised targets in two microbatches")
    axes.set_ylabel("error of the gradient")
    figure.tight_layout()
    return figure
