# fails with: The denominator counts targets
import numpy as np


def squared_error(outputs, targets):
    return np.sum((outputs - targets) ** 2), outputs.size


def cross_entropy(logits, targets, weight):
    kept = targets != -100
    logits, targets = logits[kept], targets[kept]
    largest = logits.max(axis=1, keepdims=True)
    log_sums = largest[:, 0] + np.log(np.exp(logits - largest).sum(axis=1))
    losses = log_sums - logits[np.arange(len(targets)), targets]
    return np.sum(weight[targets] * losses), len(targets)


def is_additive(loss, outputs, targets):
    whole = np.array(loss(outputs, targets))
    for i in range(1, len(outputs)):
        parts = np.array([loss(outputs[:i], targets[:i]), loss(outputs[i:], targets[i:])])
        if not np.allclose(parts.sum(axis=0), whole, rtol=1e-9, atol=0):
            return False
    return True
