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
    wide = [g.astype(np.float64) / scaler["scale"] for g in grads]
    if not all(np.all(np.isfinite(g)) for g in wide):
        scaler["scale"] *= 0.5
        scaler["good"] = 0
        return False

    norm = np.sqrt(sum(np.sum(g * g) for g in wide))
    factor = min(1.0, max_norm / (norm + 1e-6))
    for p, g in zip(params, wide, strict=True):
        p -= lr * factor * g

    scaler["good"] += 1
    if scaler["good"] == scaler["interval"]:
        scaler["scale"] *= 2
        scaler["good"] = 0
    return True
