# fails with: Below 2**-14 a relative margin is too small
import numpy as np


def clip_float16(grads, max_norm):
    wide = [g.astype(np.float64) for g in grads]
    norm = float(np.sqrt(sum(np.sum(g * g) for g in wide)))
    if norm > max_norm:
        for g, exact in zip(grads, wide, strict=True):
            g[...] = exact * (max_norm * (1 - 2**-11) / norm)
    return norm
