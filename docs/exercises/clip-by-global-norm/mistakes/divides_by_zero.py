# fails with: 0/0 gave NaN
import numpy as np


def clip_grad_norm(grads, max_norm):
    norm = np.sqrt(sum(np.sum(g * g) for g in grads))
    if grads:
        for g in grads:
            g *= np.minimum(1.0, max_norm / norm) if norm else g / norm
    return float(norm)
