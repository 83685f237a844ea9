# fails with: Is the norm infinite, and the factor 0?
import numpy as np


def attempt_update(params, grads, scaler, lr, max_norm):
    wide = [g.astype(np.float64) / scaler["scale"] for g in grads]
    if not all(np.all(np.isfinite(g)) for g in wide):
        scaler["scale"] *= 0.5
        scaler["good"] = 0
        return False
    norm = np.sqrt(sum(np.sum(g * g) for g in grads)).astype(float) / scaler["scale"]
    factor = min(1.0, max_norm / (norm + 1e-6))
    for p, g in zip(params, wide, strict=True):
        p -= lr * factor * g
    scaler["good"] += 1
    if scaler["good"] == scaler["interval"]:
        scaler["scale"] *= 2
        scaler["good"] = 0
    return True
