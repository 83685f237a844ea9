# fails with: The lengths are largest singular values
import numpy as np


def clip_by_value(grad, limit):
    return np.clip(grad, -limit, limit)


def clip_by_norm(grad, limit):
    norm = float(np.sqrt(np.sum(grad * grad)))
    return grad * (limit / norm) if norm > limit else grad.copy()


def angle(before, after):
    lengths = np.linalg.norm(before, 2) * np.linalg.norm(after, 2)
    if lengths == 0.0:
        return 0.0
    cosine = np.sum(before * after) / lengths
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
