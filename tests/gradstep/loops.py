"""A small model, batches of unequal counts, and windows that fail."""

import copy
import math
from typing import Any

import torch
from torch import Tensor

INF = math.inf
Batches = list[tuple[Tensor, Tensor]]


def small_model(seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def batches_of(sizes: list[int], dtype: torch.dtype = torch.float64) -> Batches:
    """Rows with random targets, every fourth of them ignored."""
    torch.manual_seed(1)
    batches = []
    for size in sizes:
        targets = torch.randint(0, 3, (size,))
        targets[1::4] = -100
        batches.append((torch.randn(size, 4, dtype=dtype), targets))
    return batches


def as_one(window: Batches) -> tuple[Tensor, Tensor]:
    return torch.cat([x for x, _ in window]), torch.cat([y for _, y in window])


def snapshot(model: torch.nn.Module, *others: Any) -> list[Any]:
    """Copies of all state: parameters, gradients, and whatever has a state_dict."""
    gradients = [p.grad for p in model.parameters()]
    return copy.deepcopy([model.state_dict(), gradients, *(o.state_dict() for o in others)])


def assert_equal(left: Any, right: Any) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=0, equal_nan=True)


def broken(kind: str) -> Batches:
    """Two windows of two; the second one fails, in its second microbatch where it has one."""
    batches = batches_of([3, 3, 3, 3], torch.float32)
    inputs, targets = batches[3]
    if kind == "no target":
        batches[2:] = [(x, torch.full_like(y, -100)) for x, y in batches[2:]]
    elif kind == "loss":
        batches[3] = (torch.full_like(inputs, math.nan), targets)
    elif kind == "gradient":
        batches[3] = (inputs * 1e38, targets)
    elif kind == "shape":
        batches[3] = (inputs[:, :2], targets)
    elif kind == "pair":
        batches[3] = (inputs, targets, targets)  # type: ignore[assignment]
    return batches


class ExplodingSquare(torch.autograd.Function):
    """Finite forward, infinite backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return torch.where(x.abs() > 1e30, INF, grad)


class Exploding(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return ExplodingSquare.apply(x)


FAILURES = {
    "no target": (ValueError, r"window 1 has no supervised target: .* add up to 0"),
    "loss": (FloatingPointError, r"loss sum of window 1, microbatch 1 is nan"),
    "gradient": (
        FloatingPointError,
        r"gradient of parameter 0\.weight is not finite.*\n.*window 1",
    ),
    "shape": (
        RuntimeError,
        r"shapes cannot be multiplied[^$]*window 1 .*1 of its microbatches done",
    ),
    "pair": (TypeError, r"pair \(inputs, targets\)[^$]*window 1 .*microbatch 1"),
}
