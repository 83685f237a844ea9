# fails with: squares and sums in float16 end at 65,504
import numpy as np


def clip_float16(grads, max_norm):
    norm = float(np.sqrt(sum(np.sum(g * g) for g in grads)))
    if norm > max_norm:
        for g in grads:
            g[...] = g.astype(np.float64) * (max_norm * (1 - 2**-10) / norm)
    return norm
