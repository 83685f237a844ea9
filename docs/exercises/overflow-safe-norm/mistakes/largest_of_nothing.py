# fails with: No entry is the largest of none
import math

import numpy as np


def safe_norm(grads):
    largest = float(np.max([np.max(np.abs(g)) for g in grads]))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    squares = (float(np.sum((g.astype(np.float64) / largest) ** 2)) for g in grads)
    return largest * math.sqrt(sum(squares))
