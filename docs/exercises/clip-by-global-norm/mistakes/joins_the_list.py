# fails with: NumPy joins no empty list of arrays
import numpy as np


def clip_grad_norm(grads, max_norm):
    norm = float(np.linalg.norm(np.concatenate([g.ravel() for g in grads])))
    scale = min(1.0, max_norm / (norm + 1e-6))
    for g in grads:
        g *= scale
    return norm
