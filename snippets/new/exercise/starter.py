import numpy as np


def mean_square(x: np.ndarray) -> float:
    """Return the mean of the squares of all entries, as a Python float."""
    ...
