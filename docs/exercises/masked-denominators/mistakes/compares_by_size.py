# fails with: which is larger than every class
import numpy as np


def shares(targets, ignore_index):
    counts = np.array([np.count_nonzero(t > ignore_index) for t in targets])
    if counts.sum() == 0:
        raise ValueError("the window has no supervised target, so it has no mean: leave it out")
    return counts / counts.sum()


def window_mean(losses, targets, ignore_index):
    masks = [t > ignore_index for t in targets]
    count = sum(np.count_nonzero(mask) for mask in masks)
    if count == 0:
        raise ValueError("the window has no supervised target, so it has no mean: leave it out")
    return float(sum(np.sum(loss[mask]) for loss, mask in zip(losses, masks, strict=True)) / count)
