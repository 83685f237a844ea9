import numpy as np


def local_squares(shards: list[np.ndarray], replicated: list[bool], rank: int) -> float:
    """What this rank adds to the squared norm of the whole gradient.

    `replicated[k]` says that `shards[k]` is a copy which every rank holds.
    """
    ...


def clip_shards(grads: list[np.ndarray], total: float, max_norm: float) -> float:
    """Scale this rank's arrays in place; `total` is the sum of all contributions.

    Returns the norm of the whole gradient before clipping. Raises FloatingPointError if it is
    not finite.
    """
    ...
