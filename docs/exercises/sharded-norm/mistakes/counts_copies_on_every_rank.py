# fails with: The copies were counted on every rank
import math

import numpy as np


def local_squares(shards, replicated, rank):
    return float(sum(np.sum(np.square(g, dtype=np.float64)) for g in shards))


def clip_shards(grads, total, max_norm):
    norm = math.sqrt(total)
    if not math.isfinite(norm):
        raise FloatingPointError("not finite")
    scale = min(1.0, max_norm / (norm + 1e-6))
    for g in grads:
        g *= scale
    return norm
