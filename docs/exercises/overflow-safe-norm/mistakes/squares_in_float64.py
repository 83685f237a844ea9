# fails with: a square overflowed in float64
import numpy as np


def safe_norm(grads):
    return float(np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in grads)))
