import numpy as np


def clip_grad_norm(grads: list[np.ndarray], max_norm: float) -> float:
    """Scale all arrays in place, so that their joint norm is at most `max_norm`.

    Returns the norm before clipping, as a Python float.
    """
    ...
