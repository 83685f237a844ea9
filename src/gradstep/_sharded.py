"""Norms and clipping of gradients that lie on several ranks: DTensors, pipeline stages.

Each rank measures what it holds. An all-gather of two float64 numbers for each layout, over
each group of ranks that a mesh dimension names, then tells all of them the same norm bit for
bit: one all-gather for FSDP2 or tensor parallelism, two for both, one more over stages.
"""

from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from ._arguments import Nonfinite, NonfiniteGradientError
from ._cpu import clip_norm_on_cpu, limit_on_cpu, measure_on_cpu
from ._device import (
    DeviceNorm,
    coefficient_on_device,
    largest_on_device,
    limit_on_device,
    measure_on_device,
    scale_on_device,
)
from ._gradients import Gradients, nonfinite_entries, nonfinite_error
from ._layouts import Held, Layout, Ranks, held, write_sums
from ._norms import Margin, Norm, margin


def norm_everywhere(
    gradients: Gradients, process_group: Any, order: float, policy: Nonfinite
) -> Tensor:
    """`global_norm`."""
    return _measured(held(gradients, process_group), order, policy).norm.value


@torch.no_grad()
def clip_norm_everywhere(
    gradients: Gradients,
    process_group: Any,
    bound: float,
    order: float,
    policy: Nonfinite,
    divisor: float,
) -> Tensor:
    """`clip_grad_norm_`: one coefficient on all ranks, and the same policy."""
    here = held(gradients, process_group)
    measured = _measured(here, order, policy)
    norm, target = measured.norm.divided(divisor), measured.target(bound)
    local = here.gradients
    changed: Tensor | bool = False
    if not local.on_cpu:
        coefficient = coefficient_on_device(norm, bound, target, divisor)
        scale_on_device(local.tensors, coefficient)
        changed = coefficient != 1
    elif local.tensors:
        known = Norm(norm.scale.item(), norm.ratio.item(), 0)
        changed = known.finite and (known.value > bound or divisor != 1)
        if changed:
            clip_norm_on_cpu(local, known, target.item(), divisor)
    write_sums(here, changed)
    return norm.value


@torch.no_grad()
def clip_value_everywhere(
    gradients: Gradients, process_group: Any, bound: float, policy: Nonfinite
) -> None:
    """`clip_grad_value_`: every rank limits its own entries, or none does."""
    here = held(gradients, process_group)
    largest = _measured(here, torch.inf, policy, coordinatewise=True).norm.scale
    local = here.gradients
    beyond = largest.isfinite() & (largest > bound)
    changed = bool(beyond) if local.on_cpu else beyond
    if not local.on_cpu:
        limit_on_device(local.tensors, bound, largest.isfinite())
    elif changed:
        limit_on_cpu(local, bound)
    write_sums(here, changed)


class Measured(NamedTuple):
    """A norm over all ranks, and the margins that storing the gradients needs."""

    norm: DeviceNorm
    relative: Tensor
    absolute: Tensor

    def target(self, bound: float) -> Tensor:
        """The norm to scale to."""
        return (bound * (1 - self.relative) - self.absolute).clamp(min=0.0)


def _measured(
    here: Held, order: float, policy: Nonfinite, coordinatewise: bool = False
) -> Measured:
    """The norm of all entries on all ranks, the same bits on each; an error where it must be."""
    layouts = list(here.layouts)
    rows = [_row(here, layout, order, coordinatewise) for layout in layouts]
    rows = [row.to(rows[0].device) for row in rows]
    for ranks, group in here.groups.items():
        rows = _agreed(rows, layouts, ranks, group, order)
    joined = _joined(torch.stack(rows), order) if rows else torch.zeros(2, dtype=torch.float64)
    scale, ratio = joined.unbind()
    relative, absolute = (torch.full_like(scale, m) for m in _margin(here, order))
    if here.stages is not None:
        own = torch.stack([scale, ratio, relative, absolute])
        gathered = _gathered(own, here.stages).to(own.device)
        scale, ratio = _joined(gathered[:, :2], order).unbind()
        relative, absolute = gathered[:, 2:].amax(0).unbind()
        absolute = absolute * len(gathered) ** (1 / order)  # no more than all of them together
    if policy == "raise" and not scale.isfinite():
        raise _error(here)
    return Measured(DeviceNorm(scale, ratio), relative, absolute)


def _margin(here: Held, order: float) -> Margin:
    if not here.given:
        return Margin(0.0, 0.0)
    entries = sum(gradient.numel() for gradient in here.given)  # of a DTensor on all its ranks
    return margin(order, entries, here.gradients.precision())


def _row(here: Held, layout: Layout, order: float, coordinatewise: bool) -> Tensor:
    """Scale and ratio of the entries of one layout on this rank."""
    tensors = [here.gradients.tensors[index] for index in here.layouts[layout]]
    gradients = here.gradients._replace(tensors=tensors)
    if here.gradients.on_cpu:
        norm = measure_on_cpu(gradients, order, coordinatewise)
        return torch.tensor([norm.scale, norm.ratio], dtype=torch.float64)
    if coordinatewise:
        largest = largest_on_device(tensors)
        return torch.stack([largest, torch.ones_like(largest)])
    return torch.stack(measure_on_device(gradients, order))


def _agreed(
    rows: list[Tensor], layouts: list[Layout], ranks: Ranks, group: Any, order: float
) -> list[Tensor]:
    """The rows of a rank joined with those of the others in a group."""
    gathered = _gathered(torch.stack(rows), group)  # (ranks, layouts, 2)
    joined = _joined(gathered, order)
    largest = gathered[..., 0].amax(0)  # NaN if one is
    agreed = []
    for index, (row, layout) in enumerate(zip(rows, layouts, strict=True)):
        if ranks in layout.sharded:
            row = joined[index]
        elif layout.replicated is None or ranks in layout.replicated:
            # one of the copies; but what is not finite in any of them stops all ranks
            scale = largest[index]
            row = torch.where(scale.isfinite(), gathered[0, index], scale)
        agreed.append(row)
    return agreed


def _gathered(own: Tensor, group: Any) -> Tensor:
    place = _place(own, group)
    gathered = [torch.empty_like(place) for _ in range(dist.get_world_size(group))]
    dist.all_gather(gathered, place, group=group)
    return torch.stack(gathered)


def _place(own: Tensor, group: Any) -> Tensor:
    """`own` where the group can send it from: a stage without gradients knows no device."""
    if own.is_cpu and dist.get_backend(group) == "nccl":
        return own.cuda()
    return own.contiguous()


def _joined(rows: Tensor, order: float) -> Tensor:
    """The norm of norms, along the first dimension of (n, ..., 2): nothing over- or underflows."""
    scale, ratio = rows.unbind(-1)
    largest = scale.amax(0)  # NaN if one is
    if order == torch.inf:
        return torch.stack([largest, torch.ones_like(largest)], -1)
    divisor = torch.where(largest.isfinite() & (largest > 0), largest, 1.0)
    powers = (scale / divisor * ratio) ** order
    return torch.stack([largest, powers.sum(0) ** (1 / order)], -1)


def _error(here: Held) -> NonfiniteGradientError:
    """The same error on every rank, after one more round that only a failure costs."""
    fault = _fault(here)
    for group in (*here.groups.values(), *([] if here.stages is None else [here.stages])):
        faults: list[str | None] = [None] * dist.get_world_size(group)
        dist.all_gather_object(faults, fault, group=group)
        fault = next((found for found in faults if found), None)
    return nonfinite_error(fault or "a gradient is not finite")


def _fault(here: Held) -> str | None:
    for given, gradient in zip(here.given, here.gradients.tensors, strict=True):
        found = nonfinite_entries(gradient)
        if found:
            return f"on rank {dist.get_rank()} {here.gradients.called(given)} {found}"
    return None
