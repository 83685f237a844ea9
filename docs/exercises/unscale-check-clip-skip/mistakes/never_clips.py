# fails with: Unscaled, but not clipped
import numpy as np


def attempt_update(params, grads, scaler, lr, max_norm):
    wide = [g.astype(np.float64) / scaler["scale"] for g in grads]
    if not all(np.all(np.isfinite(g)) for g in wide):
        scaler["scale"] *= 0.5
        scaler["good"] = 0
        return False
    factor = 1.0
    for p, g in zip(params, wide, strict=True):
        p -= lr * factor * g
    scaler["good"] += 1
    if scaler["good"] == scaler["interval"]:
        scaler["scale"] *= 2
        scaler["good"] = 0
    return True
