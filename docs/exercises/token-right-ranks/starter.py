import numpy as np


def scale_for_average(grads: list[list[np.ndarray]], counts: np.ndarray) -> int:
    """Scale loss-sum gradients in place, so that their average over ranks is token-right.

    `grads[r]` are the arrays of rank r, `counts[r, j]` its supervised targets in microbatch j.
    Returns the number of targets on all ranks.
    """
    ...
