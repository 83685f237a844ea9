# fails with: This is the mean of the microbatches' means
import numpy as np


def shares(targets, ignore_index):
    return np.full(len(targets), 1 / len(targets))


def window_mean(losses, targets, ignore_index):
    means = [np.mean(loss[t != ignore_index]) for loss, t in zip(losses, targets, strict=True)]
    return float(np.mean(means))
