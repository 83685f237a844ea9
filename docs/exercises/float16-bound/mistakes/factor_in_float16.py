# fails with: `g *= factor` rounds the factor to float16 first
import numpy as np


def clip_float16(grads, max_norm):
    norm = float(np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in grads)))
    if norm > max_norm:
        factor = max_norm * (1 - 2**-10) / norm
        for g in grads:
            g *= factor
    return norm
