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

    @property
    def value(self) -> Tensor:
        """The norm itself; infinite when it is beyond float64."""
        return self.scale * self.ratio

    def divided(self, divisor: float) -> "DeviceNorm":
        """The norm of the entries divided by `divisor`."""
        return self._replace(scale=self.scale / divisor)


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
    norm = measure_on_device(gradients, order).divided(divisor)
    if policy == "raise" and not norm.scale.isfinite():  # the one synchronization
        raise gradients.error()
    entries = sum(map(Tensor.numel, gradients.tensors))
    target = clip_target(bound, order, entries, gradients.precision())
    scale_on_device(gradients.tensors, coefficient_on_device(norm, bound, target, divisor))
    return norm.value


@torch.no_grad()
def clip_value_on_device(gradients: Gradients, bound: float, policy: Nonfinite) -> None:
    """`clip_grad_value_` by a limit that stays on the device, infinite where nothing clips."""
    finite = largest_on_device(gradients.tensors).isfinite()
    if policy == "raise" and not finite:  # the one synchronization
        raise gradients.error()
    limit_on_device(gradients.tensors, bound, finite)


def coefficient_on_device(
    norm: DeviceNorm, bound: float, target: float | Tensor, divisor: float
) -> Tensor:
    """The factor for all gradients, 1 where one is not finite."""
    limit = bound if divisor == 1 else target  # a division rounds, too
    shrink = torch.where(norm.value > limit, target / norm.scale / norm.ratio, 1.0)
    return torch.where(norm.scale.isfinite(), shrink / divisor, 1.0)


def scale_on_device(tensors: list[Tensor], coefficient: Tensor) -> None:
    """Multiply all of them by a tensor without dimensions."""
    for (device, dtype), places in _groups([writable(g) for g in tensors]):
        # half precision multiplies by the whole coefficient, not by its own rounding of it
        precise = coefficient.dtype if dtype in HALF else dtype.to_real()
        torch._foreach_mul_(places, coefficient.to(device, precise))


def largest_on_device(tensors: list[Tensor]) -> Tensor:
    """The largest magnitude of a coordinate; NaN if there is one."""
    return _norms(list(coordinates(tensors)), torch.inf).max()


def limit_on_device(tensors: list[Tensor], bound: float, finite: Tensor) -> None:
    """Clamp every coordinate, or none where not all is finite."""
    for part in coordinates(tensors):
        # in its own dtype: a Python number in torch.where() would be rounded to float32
        limit = torch.full_like(finite, at_most(bound, part.dtype), dtype=part.dtype)
        limit = limit.masked_fill_(~finite, torch.inf).to(part.device)
        part.clamp_(-limit, limit)


def _norms(tensors: list[Tensor], order: float) -> Tensor:
    """The norm of each tensor, in no particular order, on the device of the first."""
    wide = _wide(tensors[0])
    norms = (
        norm.to(tensors[0].device)
        for _, group in _groups(tensors)
        for norm in torch._foreach_norm(group, order, dtype=wide)
    )
    # no tensor, or none with entries, as on a rank that got an empty shard of each
    return torch.stack(list(norms) or [torch.zeros((), dtype=wide, device=tensors[0].device)])


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
