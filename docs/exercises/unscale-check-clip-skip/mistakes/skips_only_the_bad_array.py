# fails with: Only the bad array was left out
import numpy as np


def attempt_update(params, grads, scaler, lr, max_norm):
    wide = [g.astype(np.float64) / scaler["scale"] for g in grads]
    good = [np.all(np.isfinite(g)) for g in wide]
    norm = np.sqrt(sum(np.sum(g * g) for g in wide if np.all(np.isfinite(g))))
    factor = min(1.0, max_norm / (norm + 1e-6))
    for p, g, fine in zip(params, wide, good, strict=True):
        if fine:
            p -= lr * factor * g
    if not all(good):
        scaler["scale"] *= 0.5
        scaler["good"] = 0
        return False
    scaler["good"] += 1
    if scaler["good"] == scaler["interval"]:
        scaler["scale"] *= 2
        scaler["good"] = 0
    return True
