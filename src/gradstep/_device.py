"""Clipping where a read-back would stall: no value returns to Python unless a policy asks."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from ._arguments import Nonfinite
from ._gradients import HALF, Gradients, at_most, coordinates, real_entries, writable
from ._norms import clip_target


class DeviceNorm(NamedTuple):
    """A norm as `scale * ratio`, in tensors without dimensions; `scale` is finite if all is."""

    scale: Tensor
    ratio: Tensor


def measure_on_device(gradients: Gradients, order: float) -> DeviceNorm:
    """The p-norm in float64: one read for p = 2 up to float32 and for inf, else two."""
    tensors = [real_entries(gradient, order) for gradient in gradients.tensors]
    one = torch.ones((), dtype=_wide(tensors[0]), device=tensors[0].device)
    squares_fit = order == 2 and one.dtype == torch.float64
    if squares_fit and all(tensor.dtype != torch.float64 for tensor in tensors):
        return DeviceNorm(torch.linalg.vector_norm(_norms(tensors, order), order), one)
    largest = _norms(tensors, torch.inf).max()
    if order == torch.inf:
        return DeviceNorm(largest, one)
    divisor = torch.where(largest.isfinite() & (largest > 0), largest, one)
    scaled = [tensor.to(one.dtype) / divisor.to(tensor.device) for tensor in tensors]
    return DeviceNorm(largest, torch.linalg.vector_norm(_norms(scaled, order), order))


@torch.no_grad()
def clip_norm_on_device(
    gradients: Gradients, bound: float, order: float, policy: Nonfinite, divisor: float = 1.0
) -> Tensor:
    """`clip_grad_norm_` by a coefficient that stays on the device, 1 where nothing clips."""
    scale, ratio = measure_on_device(gradients, order)
    scale = scale / divisor
    finite = scale.isfinite()
    if policy == "raise" and not finite:  # the one synchronization
        raise gradients.error()
    value = scale * ratio
    entries = sum(map(Tensor.numel, gradients.tensors))
    target = clip_target(bound, order, entries, gradients.precision())
    limit = bound if divisor == 1 else target  # a division rounds, too
    shrink = torch.where(value > limit, target / scale / ratio, 1.0)
    coefficient = torch.where(finite, shrink / divisor, 1.0)
    for (device, dtype), places in _groups([writable(g) for g in gradients.tensors]):
        # half precision multiplies by the whole coefficient, not by its own rounding of it
        precise = coefficient.dtype if dtype in HALF else dtype.to_real()
        torch._foreach_mul_(places, coefficient.to(device, precise))
    return value


@torch.no_grad()
def clip_value_on_device(gradients: Gradients, bound: float, policy: Nonfinite) -> None:
    """`clip_grad_value_` by a limit that stays on the device, infinite where nothing clips."""
    parts = list(coordinates(gradients.tensors))
    finite = _norms(parts, torch.inf).max().isfinite()
    if policy == "raise" and not finite:  # the one synchronization
        raise gradients.error()
    for part in parts:
        here = finite.to(part.device)
        limit = torch.where(here, at_most(bound, part.dtype), torch.inf).to(part.dtype)
        part.clamp_(-limit, limit)


def _norms(tensors: list[Tensor], order: float) -> Tensor:
    """The norm of each tensor, in no particular order, on the device of the first."""
    wide = _wide(tensors[0])
    norms = (
        norm.to(tensors[0].device)
        for _, group in _groups(tensors)
        for norm in torch._foreach_norm(group, order, dtype=wide)
    )
    return torch.stack(list(norms))


def _groups(
    tensors: list[Tensor],
) -> Iterable[tuple[tuple[torch.device, torch.dtype], list[Tensor]]]:
    """Tensors that one kernel can take together; those without entries are left out."""
    groups: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
    for tensor in tensors:
        if tensor.numel():
            groups.setdefault((tensor.device, tensor.dtype), []).append(tensor)
    return groups.items()


def _wide(tensor: Tensor) -> torch.dtype:
    return torch.float32 if tensor.device.type == "mps" else torch.float64  # mps has no float64
