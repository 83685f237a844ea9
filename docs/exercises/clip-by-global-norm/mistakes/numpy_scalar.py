# fails with: not a float. Convert the norm with float(...)
import numpy as np


def clip_grad_norm(grads, max_norm):
    norm = np.sqrt(sum(np.sum(g * g) for g in grads))
    scale = min(1.0, max_norm / (norm + 1e-6))
    for g in grads:
        g *= scale
    return norm
