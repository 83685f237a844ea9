# fails with: The gradient was made longer
import numpy as np


def clip_by_value(grad, limit):
    return np.clip(grad, -limit, limit)


def clip_by_norm(grad, limit):
    return grad * (limit / float(np.sqrt(np.sum(grad**2))))


def angle(before, after):
    lengths = float(np.sqrt(np.sum(before**2) * np.sum(after**2)))
    if lengths == 0.0:
        return 0.0
    cosine = np.sum(before * after) / lengths
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
