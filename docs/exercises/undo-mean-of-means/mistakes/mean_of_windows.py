# fails with: This is the mean of the windows' means
import numpy as np


def window_means(means, counts):
    weights = counts.reshape(counts.shape + (1,) * (means.ndim - 2))
    sums = np.sum(np.where(weights > 0, means, 0) * weights, axis=1)
    with np.errstate(invalid="ignore"):
        return sums / np.sum(weights, axis=1)


def run_mean(means, counts):
    return np.nanmean(window_means(means, counts), axis=0)
