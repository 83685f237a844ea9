# fails with: The work in Python grows with the number of entries
import math


def clip_grad_norm(grads, max_norm):
    norm = math.sqrt(sum(x * x for g in grads for x in g.flat))
    scale = min(1.0, max_norm / (norm + 1e-6))
    for g in grads:
        g *= scale
    return norm
