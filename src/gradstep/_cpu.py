"""Measuring and clipping gradients on the CPU, where nothing is written below the bound."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from ._gradients import HALF, Gradients, at_most, coordinates, cpu_blocks, real_entries, writable
from ._norms import SMALL, Norm, is_in_range, measure, steps

# up to these, a few calls of torch are fastest: less code to fetch, which a backward pass has
# driven out of the caches
FEW_TENSORS, FEW_ENTRIES = 64, 1 << 18
WIDENED = 1 << 15  # up to these, float64 throughout
SHORT_ROW = 128  # entries summed in float32 otherwise


def measure_on_cpu(gradients: Gradients, order: float, coordinatewise: bool = False) -> Norm:
    """The p-norm; `coordinatewise` takes the two parts of a complex entry for two entries."""
    tensors = gradients.tensors
    if not gradients.plain:
        view_order = 2 if coordinatewise else order
        tensors = [real_entries(gradient, view_order) for gradient in tensors]
    ready = gradients.plain and gradients.dtypes.isdisjoint(HALF)
    if order == 2 and ready and len(tensors) <= FEW_TENSORS:
        entries = sum(map(Tensor.numel, tensors))
        if 0 < entries <= FEW_ENTRIES and is_in_range(square := _square(tensors, entries), entries):
            return Norm(1.0, math.sqrt(square), entries)
    return measure(lambda: cpu_blocks(tensors, ready), order)


def _square(tensors: list[Tensor], entries: int) -> float:
    if entries <= WIDENED:
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors]).double()
    else:
        norms = [torch.linalg.vector_norm(rows, dim=1) for rows in _short_rows(tensors)]
        flat = torch.cat(norms).double()
    return torch.dot(flat, flat).item()


def _short_rows(tensors: list[Tensor]) -> Iterator[Tensor]:
    """Large tensors as they are, and the others in one with zeros behind them."""
    others = []
    for tensor in tensors:
        if tensor.numel() < SMALL or tensor.numel() % SHORT_ROW:
            others.append(tensor.reshape(-1))
        else:
            yield tensor.reshape(-1, SHORT_ROW)
    if others:
        held = sum(map(Tensor.numel, others))
        others.append(others[0].new_zeros(-held % SHORT_ROW))
        yield torch.cat(others).view(-1, SHORT_ROW)


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
