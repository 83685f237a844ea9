# fails with: Add up the squares of the norms, not the norms
import numpy as np


def safe_norm(grads):
    total = 0.0
    for g in grads:
        largest = float(np.max(np.abs(g), initial=0.0))
        if largest:
            total += largest * float(np.linalg.norm(g.ravel().astype(np.float64) / largest))
    return total
