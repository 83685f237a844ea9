# fails with: that would be a perfect loss
import numpy as np


def shares(targets, ignore_index):
    counts = np.array([np.count_nonzero(t != ignore_index) for t in targets])
    if counts.sum() == 0:
        raise ValueError("no supervised target")
    return counts / counts.sum()


def window_mean(losses, targets, ignore_index):
    masks = [t != ignore_index for t in targets]
    count = sum(np.count_nonzero(mask) for mask in masks)
    if count == 0:
        return 0.0
    return float(sum(np.sum(loss[mask]) for loss, mask in zip(losses, masks, strict=True)) / count)
