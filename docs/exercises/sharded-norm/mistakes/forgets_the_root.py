# fails with: and the root is missing
import math

import numpy as np


def local_squares(shards, replicated, rank):
    counted = [g for g, copy in zip(shards, replicated, strict=True) if rank == 0 or not copy]
    return float(sum(np.sum(np.square(g, dtype=np.float64)) for g in counted))


def clip_shards(grads, total, max_norm):
    if not math.isfinite(total):
        raise FloatingPointError("not finite")
    scale = min(1.0, max_norm / (total + 1e-6))
    for g in grads:
        g *= scale
    return total
