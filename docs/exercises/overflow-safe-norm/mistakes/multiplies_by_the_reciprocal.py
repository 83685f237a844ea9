# fails with: 1 / m overflows for this m
import math

import numpy as np


def safe_norm(grads):
    largest = float(np.max([np.max(np.abs(g), initial=0.0) for g in grads], initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    scale = np.float64(1.0) / largest
    squares = (float(np.sum((g.astype(np.float64) * scale) ** 2)) for g in grads)
    return largest * math.sqrt(sum(squares))
