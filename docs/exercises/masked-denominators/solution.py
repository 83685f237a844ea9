import numpy as np


def shares(targets: list[np.ndarray], ignore_index: int) -> np.ndarray:
    """Return the share of each microbatch in the supervised targets of the window."""
    counts = np.array([np.count_nonzero(t != ignore_index) for t in targets])
    if counts.sum() == 0:
        raise ValueError("the window has no supervised target, so it has no mean: leave it out")
    return counts / counts.sum()


def window_mean(losses: list[np.ndarray], targets: list[np.ndarray], ignore_index: int) -> float:
    """Return the mean loss over all supervised targets of the window."""
    masks = [t != ignore_index for t in targets]
    count = sum(np.count_nonzero(mask) for mask in masks)
    if count == 0:
        raise ValueError("the window has no supervised target, so it has no mean: leave it out")
    return float(sum(np.sum(loss[mask]) for loss, mask in zip(losses, masks, strict=True)) / count)
