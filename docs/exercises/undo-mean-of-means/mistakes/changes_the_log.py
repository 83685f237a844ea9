# fails with: means was changed, but it belongs to the caller
import numpy as np


def window_means(means, counts):
    means[counts == 0] = 0
    weights = counts.reshape(counts.shape + (1,) * (means.ndim - 2))
    with np.errstate(invalid="ignore"):
        return np.sum(means * weights, axis=1) / np.sum(weights, axis=1)


def run_mean(means, counts):
    return window_means(means.reshape(1, -1, *means.shape[2:]), counts.reshape(1, -1))[0]
