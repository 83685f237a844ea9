# fails with: 0/0 gave NaN, which an optimizer step would spread
import numpy as np


def shares(targets, ignore_index):
    counts = np.array([np.count_nonzero(t != ignore_index) for t in targets])
    return counts / counts.sum()


def window_mean(losses, targets, ignore_index):
    masks = [t != ignore_index for t in targets]
    total = np.array([loss[mask].sum() for loss, mask in zip(losses, masks, strict=True)]).sum()
    return float(total / np.array([mask.sum() for mask in masks]).sum())
