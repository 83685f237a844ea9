import numpy as np


def clip_float16(grads: list[np.ndarray], max_norm: float) -> float:
    """Scale float16 arrays in place, so that their joint norm as stored is at most `max_norm`.

    Returns the norm before clipping, as a Python float.
    """
    ...
