"""What a rank reads from its device in a window: the count, the losses, a fingerprint."""

import math
from typing import Any
from zlib import crc32

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from .objectives import Objective


def denominator(objective: Objective, window: list[Any], index: int) -> float:
    """What this rank adds to the denominator."""
    counts: list[float | Tensor] = []
    for number, microbatch in enumerate(window):
        try:
            counts.append(objective.denominator(microbatch))
        except Exception as error:
            error.add_note(f"in window {index} of updates(), microbatch {number}")
            raise
    total = sum(counts[1:], counts[0]) if counts else 0
    return _whole(total).item() if isinstance(total, Tensor) else total


def first_fault_or_sum(loss_sums: list[Tensor], microbatches: int) -> tuple[float, float]:
    """The microbatch whose loss is not finite, and its loss; or -1, and the sum of all."""
    losses = [_whole(loss) for loss in loss_sums[:microbatches]]  # the rest only kept in step
    values = torch.stack(losses).flatten().tolist() if losses else []
    for number, value in enumerate(values):
        if not math.isfinite(value):
            return number, value
    return -1, math.fsum(values)


def fingerprint(window: list[Any]) -> int:
    """A number that other microbatches would hardly have: of their tensors, in any order of rows.

    DTensors are left out: the ranks share them.
    """
    leaves = [leaf for leaf in tree_leaves(window) if type(leaf) is Tensor and leaf.numel()]
    real = [torch.view_as_real(leaf) if leaf.is_complex() else leaf for leaf in leaves]
    hashes = [torch.hash_tensor(leaf).view(torch.int64) for leaf in real]
    return crc32(str(torch.stack(hashes).tolist()).encode()) if hashes else 0


def _whole(tensor: Tensor) -> Tensor:
    """A plain tensor, also of a DTensor that its ranks hold summands of."""
    if type(tensor) is Tensor:
        return tensor
    full: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return full
