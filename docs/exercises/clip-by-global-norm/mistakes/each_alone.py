# fails with: Each array was clipped alone
import numpy as np


def clip_grad_norm(grads, max_norm):
    norms = [np.sqrt(np.sum(g * g)) for g in grads]
    for g, norm in zip(grads, norms, strict=True):
        g *= min(1.0, max_norm / (norm + 1e-6))
    return float(np.sqrt(sum(norm**2 for norm in norms)))
