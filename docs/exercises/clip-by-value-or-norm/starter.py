import numpy as np


def clip_by_value(grad: np.ndarray, limit: float) -> np.ndarray:
    """Return a copy of `grad` with every entry within [-limit, limit]."""
    ...


def clip_by_norm(grad: np.ndarray, limit: float) -> np.ndarray:
    """Return a copy of `grad`, shortened so that its norm is at most `limit`."""
    ...


def angle(before: np.ndarray, after: np.ndarray) -> float:
    """Return the angle between two arrays in degrees; 0.0 if one is all zeros."""
    ...
