# fails with: divided by the targets of an average window
import numpy as np


def window_means(means, counts):
    weights = counts.reshape(counts.shape + (1,) * (means.ndim - 2))
    sums = np.sum(np.where(weights > 0, means, 0) * weights, axis=1)
    with np.errstate(invalid="ignore"):
        return sums / (np.sum(weights) / len(weights))


def run_mean(means, counts):
    return window_means(means.reshape(1, -1, *means.shape[2:]), counts.reshape(1, -1))[0]
