import numpy as np


def safe_norm(grads: list[np.ndarray]) -> float:
    """Return the norm over all arrays, right for every finite gradient.

    NaN if an entry is NaN, else infinity if an entry is infinite.
    """
    ...
