# fails with: The margin is too wide
import numpy as np


def clip_float16(grads, max_norm):
    wide = [g.astype(np.float64) for g in grads]
    norm = float(np.sqrt(sum(np.sum(g * g) for g in wide)))
    if norm > max_norm:
        for g, exact in zip(grads, wide, strict=True):
            g[...] = exact * (0.99 * max_norm / norm)
    return norm
