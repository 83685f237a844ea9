# fails with: inf / inf gave NaN
import math

import numpy as np


def safe_norm(grads):
    largest = float(np.max([np.max(np.abs(g), initial=0.0) for g in grads], initial=0.0))
    if largest == 0.0:
        return 0.0
    squares = (float(np.sum((g.astype(np.float64) / largest) ** 2)) for g in grads)
    return largest * math.sqrt(sum(squares))
