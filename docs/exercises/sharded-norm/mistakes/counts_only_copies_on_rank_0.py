# fails with: Only the copy was counted
import math

import numpy as np


def local_squares(shards, replicated, rank):
    counted = [g for g, copy in zip(shards, replicated, strict=True) if copy == (rank == 0)]
    return float(sum(np.sum(np.square(g, dtype=np.float64)) for g in counted))


def clip_shards(grads, total, max_norm):
    norm = math.sqrt(total)
    if not math.isfinite(norm):
        raise FloatingPointError(f"the norm of all shards is {norm}")
    scale = min(1.0, max_norm / (norm + 1e-6))
    for g in grads:
        g *= scale
    return norm
