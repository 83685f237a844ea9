# fails with: a square overflowed in float16
import math

import numpy as np


def safe_norm(grads):
    largest = float(np.max([np.max(np.abs(g), initial=0.0) for g in grads], initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    squares = (float(np.sum((g / g.dtype.type(largest)) ** 2, dtype=g.dtype)) for g in grads)
    return largest * math.sqrt(sum(squares))
