import numpy as np


def window_means(means: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the mean over the targets of each window, from the means of its microbatches."""
    weights = counts.reshape(counts.shape + (1,) * (means.ndim - 2))
    sums = np.sum(np.where(weights > 0, means, 0) * weights, axis=1, dtype=np.float64)
    totals = np.broadcast_to(np.sum(weights, axis=1), sums.shape)
    return np.divide(sums, totals, out=np.full(sums.shape, np.nan), where=totals > 0)


def run_mean(means: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the mean over all targets of the run."""
    means = means.reshape(1, -1, *means.shape[2:])
    return window_means(means, counts.reshape(1, -1))[0]
