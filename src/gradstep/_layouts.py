"""What this rank holds of each gradient, and which ranks hold the rest."""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate

from ._gradients import Gradients

Ranks = tuple[int, ...]
Groups = dict[Ranks, Any]  # process groups of several ranks, in the order of the gradients


class Layout(NamedTuple):
    """How a gradient lies on the groups of ranks that this rank belongs to."""

    sharded: frozenset[Ranks]  # each rank holds other entries
    replicated: frozenset[Ranks] | None  # each holds the same ones; None: so does every group


PLAIN = Layout(frozenset(), None)  # a gradient that is no DTensor is the same on all ranks


class Pending(NamedTuple):
    """A gradient of which each rank holds a summand, at `place` in the list."""

    place: int
    groups: tuple[Ranks, ...]
    given: Tensor  # the summand, which stays as it is unless something is written


class Held(NamedTuple):
    """What this rank holds."""

    gradients: Gradients  # as plain tensors: shards, replicas, and sums over their summands
    layouts: dict[Layout, list[int]]  # indices of the gradients
    groups: Groups  # those of the meshes
    stages: Any  # the group of ranks that hold other gradients, or None
    pending: list[Pending]
    given: list[Tensor]  # as the caller passed them


@torch.no_grad()  # else each shard would be a view of its own
def held(gradients: Gradients, process_group: Any) -> Held:
    """What this rank holds of `gradients`; sums are taken over those that are `Partial`.

    The sums take one all-reduce for each group of ranks and dtype.
    """
    if process_group is not None:
        _refuse_group(gradients, process_group)
    groups: Groups = {}
    seen: dict[tuple[int, tuple[Placement, ...]], tuple[Layout, tuple[Ranks, ...]]] = {}
    layouts: dict[Layout, list[int]] = {}
    pending: list[Pending] = []
    tensors: list[Tensor] = []
    for index, gradient in enumerate(gradients.tensors):
        layout = PLAIN
        if isinstance(gradient, DTensor):
            mesh, placements = gradient.device_mesh, tuple(gradient.placements)
            found = seen.get((id(mesh), placements))  # comparing meshes takes longer
            if found is None:
                found = _layout(gradients, gradient, groups)
                seen[id(mesh), placements] = found
            layout, summed = found
            gradient = _local(gradient)
            if summed:
                pending.append(Pending(index, summed, gradient))
        layouts.setdefault(layout, []).append(index)
        tensors.append(gradient)
    _sum(tensors, pending, groups)
    here = gradients._replace(tensors=tensors, sharded=False)
    return Held(here, layouts, groups, process_group, pending, gradients.tensors)


def _refuse_group(gradients: Gradients, group: Any) -> None:
    if not isinstance(group, dist.ProcessGroup):
        raise TypeError(
            f"process_group must be a ProcessGroup that this rank belongs to, got {group!r:.60} of "
            f"type {type(group).__name__}. Pass mesh.get_group('pp') or torch.distributed's "
            "group.WORLD."
        )
    meshes = {g.device_mesh for g in gradients.tensors if isinstance(g, DTensor)}
    mesh = {rank for found in meshes for rank in found.mesh.flatten().tolist()}
    if mesh.intersection(dist.get_process_group_ranks(group)) - {dist.get_rank()}:
        raise ValueError(
            f"process_group holds the ranks {dist.get_process_group_ranks(group)}, but a DTensor "
            f"lies on {sorted(mesh)}: its entries would count more than once. Pass the group of "
            "ranks that stand at the same place of different stages, or none."
        )


def _local(gradient: DTensor) -> Tensor:
    local: Any = gradient.to_local()
    if hasattr(local, "wait"):  # a collective is under way
        local = local.wait()
    return cast(Tensor, local)


def _layout(
    gradients: Gradients, gradient: DTensor, groups: Groups
) -> tuple[Layout, tuple[Ranks, ...]]:
    """A layout, and the groups over which its summands are to be added."""
    mesh = gradient.device_mesh
    if mesh.get_coordinate() is None:
        raise ValueError(
            f"{gradients.called(gradient)} lies on the ranks {mesh.mesh.flatten().tolist()}, got a "
            f"call on rank {dist.get_rank()}, which cannot know its norm. Pass it only on ranks of "
            "its mesh."
        )
    kinds: dict[str, list[Ranks]] = {"sharded": [], "replicated": [], "summed": []}
    for dimension, placement in enumerate(gradient.placements):
        if mesh.size(dimension) == 1:
            continue  # one rank holds all of it, whatever the placement says
        group = mesh.get_group(dimension)
        ranks = tuple(dist.get_process_group_ranks(group))
        groups.setdefault(ranks, group)
        kind = _kind(placement)
        if kind is None:
            raise ValueError(
                f"{gradients.called(gradient)} has the placement {placement!r}, but a gradient "
                "adds up: required are Shard, Replicate or Partial(sum). Redistribute it."
            )
        kinds[kind].append(ranks)
    replicated = frozenset(kinds["replicated"] + kinds["summed"])
    return Layout(frozenset(kinds["sharded"]), replicated), tuple(kinds["summed"])


def _kind(placement: Placement) -> str | None:
    if isinstance(placement, Replicate):
        return "replicated"
    if not placement.is_partial():
        return "sharded"
    sums = type(placement) is Partial and placement.reduce_op == "sum"
    return "summed" if sums else None


def _sum(tensors: list[Tensor], pending: list[Pending], groups: Groups) -> None:
    """Put sums in the place of summands, those of one dtype and group in one all-reduce."""
    for round_ in range(max((len(p.groups) for p in pending), default=0)):
        buckets: dict[tuple[Ranks, torch.dtype, torch.device], list[int]] = {}
        for place, summed, given in pending:
            if round_ < len(summed):
                bucket = (summed[round_], given.dtype, given.device)
                buckets.setdefault(bucket, []).append(place)
        for (ranks, *_), places in buckets.items():
            parts = [tensors[place] for place in places]
            flat = torch.cat([part.reshape(-1) for part in parts])  # a copy, also of one
            dist.all_reduce(flat, group=groups[ranks])
            for place, total in zip(places, _like(parts, flat), strict=True):
                tensors[place] = total


def _like(parts: list[Tensor], flat: Tensor) -> Iterator[Tensor]:
    pieces = flat.split([part.numel() for part in parts])
    return (piece.view(part.shape) for piece, part in zip(pieces, parts, strict=True))


@torch.no_grad()
def write_sums(here: Held, changed: Tensor | bool) -> None:
    """Give the first rank of each group the new sum and the others 0, which adds up exactly."""
    if changed is False:
        return
    for place, summed, given in here.pending:
        first = all(ranks[0] == dist.get_rank() for ranks in summed)
        total = here.gradients.tensors[place]
        summand = total if first else torch.zeros_like(total)
        given.copy_(summand if changed is True else torch.where(changed, summand, given))
