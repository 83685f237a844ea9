"""Measuring and clipping gradients on the CPU, where nothing is written below the bound."""

import math

import torch
from torch import Tensor

from ._gradients import HALF, Gradients, at_most, coordinates, cpu_blocks, real_entries, writable
from ._norms import Norm, measure, steps

# up to these, float64 throughout in a few calls of torch is fastest: less code to fetch, which
# a backward pass has driven out of the caches
FEW_TENSORS, FEW_ENTRIES = 64, 1 << 15


def measure_on_cpu(gradients: Gradients, order: float, coordinatewise: bool = False) -> Norm:
    """The p-norm; `coordinatewise` takes the two parts of a complex entry for two entries."""
    tensors = gradients.tensors
    if not gradients.plain:
        view_order = 2 if coordinatewise else order
        tensors = [real_entries(gradient, view_order) for gradient in tensors]
    if order == 2 and len(tensors) <= FEW_TENSORS and _are_few(tensors):
        flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors]).double()
        square = torch.dot(flat, flat).item()
        if 2.0**-900 < square < math.inf:  # no square has left the range of float64
            return Norm(1.0, math.sqrt(square), flat.numel())
    ready = gradients.plain and gradients.dtypes.isdisjoint(HALF)
    return measure(lambda: cpu_blocks(tensors, ready), order)


def _are_few(tensors: list[Tensor]) -> bool:
    return 0 < sum(map(Tensor.numel, tensors)) <= FEW_ENTRIES


def clip_norm_on_cpu(gradients: Gradients, norm: Norm, target: float, divisor: float) -> None:
    """Divide by `divisor`; shrink to `target` where the norm, which is divided, is above it."""
    # a division rounds, too: at the bound itself it could end above it
    shrink = target / norm.scale / norm.ratio if norm.value > target else 1.0
    wide = torch.float64 if gradients.precision().double else torch.float32
    _scale_(gradients, shrink / divisor, wide)


@torch.no_grad()
def limit_on_cpu(gradients: Gradients, bound: float) -> None:
    """Clamp every coordinate."""
    for part in coordinates(gradients.tensors):
        limit = at_most(bound, part.dtype)
        part.clamp_(-limit, limit)


@torch.no_grad()
def _scale_(gradients: Gradients, coefficient: float, wide: torch.dtype) -> None:
    places = gradients.tensors
    if not gradients.plain:
        places = [writable(gradient) for gradient in places]
    for step in steps(coefficient) if places else ():  # torch refuses an empty list
        # a tensor, not a Python number: three times as fast for many small gradients, and
        # half precision multiplies by all of it instead of its own rounding of it
        torch._foreach_mul_(places, torch.tensor(step, dtype=wide))
