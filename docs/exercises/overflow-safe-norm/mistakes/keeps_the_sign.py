# fails with: the largest was taken with its sign
import math

import numpy as np


def safe_norm(grads):
    largest = float(np.max([np.max(g, initial=0.0) for g in grads], initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    squares = (float(np.sum(np.square(g.astype(np.float64) / largest))) for g in grads)
    return largest * math.sqrt(sum(squares))
