# fails with: Every position was counted
import numpy as np


def shares(targets, ignore_index):
    sizes = np.array([t.size for t in targets])
    return sizes / sizes.sum()


def window_mean(losses, targets, ignore_index):
    total = sum(np.sum(loss[t != ignore_index]) for loss, t in zip(losses, targets, strict=True))
    return float(total / sum(t.size for t in targets))
