# fails with: This is still the mean of means
import numpy as np


def window_means(means, counts):
    return np.nanmean(means, axis=1)


def run_mean(means, counts):
    return window_means(means.reshape(1, -1, *means.shape[2:]), counts.reshape(1, -1))[0]
