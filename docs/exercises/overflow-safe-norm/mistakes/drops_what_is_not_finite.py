# fails with: The infinite entry went unseen
import math

import numpy as np


def safe_norm(grads):
    grads = [np.nan_to_num(g, nan=0.0, posinf=0.0, neginf=0.0) for g in grads]
    largest = float(np.max([np.max(np.abs(g), initial=0.0) for g in grads], initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    squares = (float(np.sum((g.astype(np.float64) / largest) ** 2)) for g in grads)
    return largest * math.sqrt(sum(squares))
