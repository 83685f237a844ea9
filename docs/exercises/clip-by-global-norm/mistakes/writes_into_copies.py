# fails with: `reshape(-1)` and `ravel()` copy such an array
import numpy as np


def clip_grad_norm(grads, max_norm):
    flat = [g.reshape(-1) for g in grads]
    norm = float(np.sqrt(sum(np.sum(g * g) for g in flat)))
    scale = min(1.0, max_norm / (norm + 1e-6))
    for g in flat:
        g *= scale
    return norm
