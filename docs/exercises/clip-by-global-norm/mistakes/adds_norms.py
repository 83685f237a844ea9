# fails with: These are norms, added up
import numpy as np


def clip_grad_norm(grads, max_norm):
    norm = float(sum(np.sqrt(np.sum(g * g)) for g in grads))
    scale = min(1.0, max_norm / (norm + 1e-6))
    for g in grads:
        g *= scale
    return norm
