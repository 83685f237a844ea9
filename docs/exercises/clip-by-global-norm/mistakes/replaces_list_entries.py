# fails with: grads[0] was replaced, and the caller
import numpy as np


def clip_grad_norm(grads, max_norm):
    norm = float(np.sqrt(sum(np.sum(g * g) for g in grads)))
    scale = min(1.0, max_norm / (norm + 1e-6))
    for i, g in enumerate(grads):
        grads[i] = g * scale
    return norm
