# fails with: Each array was clipped alone
import numpy as np


def clip_float16(grads, max_norm):
    squares = 0.0
    for g in grads:
        exact = g.astype(np.float64)
        norm = np.sqrt(np.sum(exact * exact))
        squares += norm**2
        if norm > max_norm:
            target = max(0.0, max_norm * (1 - 2**-11) - 2**-25 * np.sqrt(g.size))
            g[...] = exact * (target / norm)
    return float(np.sqrt(squares))
