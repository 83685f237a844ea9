"""Chains of layers, ways to run them, and what comes out."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradstep.recompute import checkpoint_chain

Run = Callable[[nn.Sequential, Tensor], Tensor]


def network(*middle: Callable[[], nn.Module], depth: int = 6) -> nn.Sequential:
    torch.manual_seed(0)
    layers = [m for _ in range(depth) for m in (nn.Linear(5, 5), nn.Tanh(), *(f() for f in middle))]
    return nn.Sequential(*layers).double()


def results(model: nn.Sequential, run: Run) -> dict[str, Tensor]:
    """The output, the gradient of the input and those of all parameters."""
    torch.manual_seed(1)
    x = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    output = run(model, x)
    (output * torch.randn(7, 5, dtype=torch.float64)).sum().backward()
    grads = {name: p.grad for name, p in model.named_parameters()}
    assert all(g is not None and g.count_nonzero() > 0 for g in (x.grad, *grads.values()))
    return {"output": output.detach(), "input gradient": x.grad, **grads}


def plain(model: nn.Sequential, x: Tensor) -> Tensor:
    return model(x)


def chained(segment: int, **options: Any) -> Run:
    return lambda model, x: checkpoint_chain(model, x, segment, **options)


def unheld(segment: int) -> Run:
    """Without the replay of buffers, and so with the warning that they move."""

    def run(model: nn.Sequential, x: Tensor) -> Tensor:
        with pytest.warns(UserWarning, match="recomputation will move them a second time"):
            return checkpoint_chain(model, x, segment, preserve_buffers=False)

    return run


def dropout() -> nn.Module:
    return nn.Dropout(0.3)
