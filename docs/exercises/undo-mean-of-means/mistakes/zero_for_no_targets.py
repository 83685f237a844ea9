# fails with: A window without targets came out as 0
import numpy as np


def window_means(means, counts):
    weights = counts.reshape(counts.shape + (1,) * (means.ndim - 2))
    sums = np.sum(np.where(weights > 0, means, 0) * weights, axis=1)
    return sums / np.maximum(np.sum(weights, axis=1), 1)


def run_mean(means, counts):
    return window_means(means.reshape(1, -1, *means.shape[2:]), counts.reshape(1, -1))[0]
