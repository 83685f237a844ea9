# fails with: n counts the entries of all arrays
import numpy as np


def clip_float16(grads, max_norm):
    wide = [g.astype(np.float64) for g in grads]
    norm = float(np.sqrt(sum(np.sum(g * g) for g in wide)))
    if norm <= max_norm:
        return norm
    entries = max(g.size for g in grads)
    target = max(0.0, max_norm * (1 - 2 ** (-11)) - 2 ** (-25) * np.sqrt(entries))
    for g, exact in zip(grads, wide, strict=True):
        g[...] = exact * (target / norm)
    return norm
