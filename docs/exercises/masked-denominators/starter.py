import numpy as np


def shares(targets: list[np.ndarray], ignore_index: int) -> np.ndarray:
    """Return the share of each microbatch in the supervised targets of the window."""
    ...


def window_mean(losses: list[np.ndarray], targets: list[np.ndarray], ignore_index: int) -> float:
    """Return the mean loss over all supervised targets of the window."""
    ...
