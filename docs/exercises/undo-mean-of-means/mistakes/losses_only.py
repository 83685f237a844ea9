# fails with: do not broadcast over the further axes
import numpy as np


def window_means(means, counts):
    sums = np.sum(np.where(counts > 0, means, 0) * counts, axis=1)
    with np.errstate(invalid="ignore"):
        return sums / np.sum(counts, axis=1)


def run_mean(means, counts):
    return window_means(means.reshape(1, -1, *means.shape[2:]), counts.reshape(1, -1))[0]
