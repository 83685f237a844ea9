import math

import numpy as np


def local_squares(shards: list[np.ndarray], replicated: list[bool], rank: int) -> float:
    """What this rank adds to the squared norm of the whole gradient.

    `replicated[k]` says that `shards[k]` is a copy which every rank holds.
    """
    counted = [g for g, copy in zip(shards, replicated, strict=True) if rank == 0 or not copy]
    return float(sum(np.sum(np.square(g, dtype=np.float64)) for g in counted))


def clip_shards(grads: list[np.ndarray], total: float, max_norm: float) -> float:
    """Scale this rank's arrays in place; `total` is the sum of all contributions.

    Returns the norm of the whole gradient before clipping. Raises FloatingPointError if it is
    not finite.
    """
    norm = math.sqrt(total)
    if not math.isfinite(norm):
        raise FloatingPointError(f"the norm of all shards is {norm}")
    scale = min(1.0, max_norm / (norm + 1e-6))
    for g in grads:
        g *= scale
    return norm
