# fails with: This is the norm after clipping
import numpy as np


def joint_norm(grads):
    return float(np.sqrt(sum(np.sum(g * g) for g in grads)))


def clip_grad_norm(grads, max_norm):
    scale = min(1.0, max_norm / (joint_norm(grads) + 1e-6))
    for g in grads:
        g *= scale
    return joint_norm(grads)
