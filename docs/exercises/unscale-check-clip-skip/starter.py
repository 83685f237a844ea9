import numpy as np


def attempt_update(
    params: list[np.ndarray],
    grads: list[np.ndarray],
    scaler: dict[str, float],
    lr: float,
    max_norm: float,
) -> bool:
    """Unscale, check and clip `grads`; then update `params` in place, or skip.

    Moves the scale and the count of `scaler`. Returns whether the update was accepted.
    """
    ...
