# fails with: The NaN is lost beside the infinity
import math

import numpy as np


def safe_norm(grads):
    if any(np.isinf(g).any() for g in grads):
        return math.inf
    largest = float(np.max([np.max(np.abs(g), initial=0.0) for g in grads], initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    squares = (float(np.sum((g.astype(np.float64) / largest) ** 2)) for g in grads)
    return largest * math.sqrt(sum(squares))
