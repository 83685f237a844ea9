# fails with: a square overflowed in float32
import numpy as np


def safe_norm(grads):
    return float(np.sqrt(sum(np.sum(g * g) for g in grads)))
