# fails with: The whole array was scaled by its largest entry
import numpy as np


def clip_by_value(grad, limit):
    return grad * min(1.0, limit / float(np.abs(grad).max()))


def clip_by_norm(grad, limit):
    norm = float(np.sqrt(np.sum(grad * grad)))
    return grad * (limit / norm) if norm > limit else grad.copy()


def angle(before, after):
    lengths = float(np.sqrt(np.sum(before**2) * np.sum(after**2)))
    if lengths == 0.0:
        return 0.0
    cosine = np.sum(before * after) / lengths
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
