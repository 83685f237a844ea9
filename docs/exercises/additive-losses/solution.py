from collections.abc import Callable

import numpy as np

Pair = tuple[float, float]


def squared_error(outputs: np.ndarray, targets: np.ndarray) -> Pair:
    """Return the sum of squared errors and the number of elements."""
    return np.sum((outputs - targets) ** 2), outputs.size


def cross_entropy(logits: np.ndarray, targets: np.ndarray, weight: np.ndarray) -> Pair:
    """Return the weighted sum of losses and the sum of weights, without targets of -100."""
    kept = targets != -100
    logits, targets = logits[kept], targets[kept]
    largest = logits.max(axis=1, keepdims=True)
    log_sums = largest[:, 0] + np.log(np.exp(logits - largest).sum(axis=1))
    chosen = np.take_along_axis(logits, targets[:, None], axis=1)[:, 0]
    return np.sum(weight[targets] * (log_sums - chosen)), np.sum(weight[targets])


def is_additive(
    loss: Callable[[np.ndarray, np.ndarray], Pair], outputs: np.ndarray, targets: np.ndarray
) -> bool:
    """Return whether both numbers of `loss` add up over every cut of the rows in two."""
    whole = np.array(loss(outputs, targets))
    for i in range(1, len(outputs)):
        first = np.array(loss(outputs[:i], targets[:i]))
        rest = np.array(loss(outputs[i:], targets[i:]))
        if not np.allclose(first + rest, whole, rtol=1e-9, atol=0):
            return False
    return True
