# fails with: The sign of the cosine was lost
import numpy as np


def clip_by_value(grad, limit):
    return np.clip(grad, -limit, limit)


def clip_by_norm(grad, limit):
    norm = float(np.sqrt(np.sum(grad * grad)))
    return grad * (limit / norm) if norm > limit else grad.copy()


def angle(before, after):
    lengths = np.linalg.norm(before.ravel()) * np.linalg.norm(after.ravel())
    if lengths == 0.0:
        return 0.0
    cosine = np.sum(before * after) / lengths
    return float(np.degrees(np.arccos(min(1.0, abs(cosine)))))
