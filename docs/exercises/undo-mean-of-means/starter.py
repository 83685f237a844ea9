import numpy as np


def window_means(means: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the mean over the targets of each window, from the means of its microbatches."""
    ...


def run_mean(means: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the mean over all targets of the run."""
    ...
