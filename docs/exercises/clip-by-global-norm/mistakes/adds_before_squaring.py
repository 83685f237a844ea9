# fails with: The entries were added up before they were squared
import numpy as np


def clip_grad_norm(grads, max_norm):
    norm = float(np.sqrt(np.sum([np.sum(g) ** 2 for g in grads])))
    scale = min(1.0, max_norm / (norm + 1e-6))
    for g in grads:
        g *= scale
    return norm
