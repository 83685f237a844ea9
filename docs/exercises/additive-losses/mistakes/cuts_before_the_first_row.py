# fails with: Is one of the pieces empty?
import numpy as np


def squared_error(outputs, targets):
    return np.sum((outputs - targets) ** 2), outputs.size


def cross_entropy(logits, targets, weight):
    kept = targets != -100
    logits, targets = logits[kept], targets[kept]
    largest = logits.max(axis=1, keepdims=True)
    log_sums = largest[:, 0] + np.log(np.exp(logits - largest).sum(axis=1))
    chosen = np.take_along_axis(logits, targets[:, None], axis=1)[:, 0]
    return np.sum(weight[targets] * (log_sums - chosen)), np.sum(weight[targets])


def is_additive(loss, outputs, targets):
    whole = np.array(loss(outputs, targets))
    for i in range(len(outputs)):
        first = np.array(loss(outputs[:i], targets[:i]))
        rest = np.array(loss(outputs[i:], targets[i:]))
        if not np.allclose(first + rest, whole, rtol=1e-9, atol=0):
            return False
    return True
