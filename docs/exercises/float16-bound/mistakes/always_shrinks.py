# fails with: The second call changed entries again
import numpy as np


def clip_float16(grads, max_norm):
    wide = [g.astype(np.float64) for g in grads]
    norm = float(np.sqrt(sum(np.sum(g * g) for g in wide)))
    factor = min(1.0, max_norm / (norm + 1e-6)) * (1 - 2**-11)
    for g, exact in zip(grads, wide, strict=True):
        g[...] = exact * factor
    return norm
