import math

import numpy as np


def safe_norm(grads: list[np.ndarray]) -> float:
    """Return the norm over all arrays, right for every finite gradient.

    NaN if an entry is NaN, else infinity if an entry is infinite.
    """
    largest = float(np.max([np.max(np.abs(g), initial=0.0) for g in grads], initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest  # NaN beats infinity in np.max
    squares = (float(np.sum(np.square(g.astype(np.float64) / largest))) for g in grads)
    return largest * math.sqrt(sum(squares))
