import numpy as np


def clip_by_value(grad: np.ndarray, limit: float) -> np.ndarray:
    """Return a copy of `grad` with every entry within [-limit, limit]."""
    return np.clip(grad, -limit, limit)


def clip_by_norm(grad: np.ndarray, limit: float) -> np.ndarray:
    """Return a copy of `grad`, shortened so that its norm is at most `limit`."""
    norm = float(np.sqrt(np.sum(grad * grad)))
    return grad * (limit / norm) if norm > limit else grad.copy()


def angle(before: np.ndarray, after: np.ndarray) -> float:
    """Return the angle between two arrays in degrees; 0.0 if one is all zeros."""
    lengths = np.linalg.norm(before.ravel()) * np.linalg.norm(after.ravel())
    if lengths == 0.0:
        return 0.0
    cosine = np.sum(before * after) / lengths
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
