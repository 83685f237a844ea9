# fails with: The gradients grew until their norm was max_norm
import numpy as np


def clip_grad_norm(grads, max_norm):
    norm = float(np.sqrt(sum(np.sum(g * g) for g in grads)))
    for g in grads:
        g *= max_norm / (norm + 1e-6)
    return norm
