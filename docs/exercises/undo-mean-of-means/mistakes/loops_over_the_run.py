# fails with: The work in Python grows
import numpy as np


def window_means(means, counts):
    weights = counts.reshape(counts.shape + (1,) * (means.ndim - 2))
    sums = np.sum(np.where(weights > 0, means, 0) * weights, axis=1, dtype=np.float64)
    totals = np.broadcast_to(np.sum(weights, axis=1), sums.shape)
    return np.divide(sums, totals, out=np.full(sums.shape, np.nan), where=totals > 0)


def run_mean(means, counts):
    total, n = (0.0, 0)
    for w in range(len(means)):
        for j in range(means.shape[1]):
            if counts[w, j]:
                total = total + means[w, j].astype(float) * counts[w, j]
                n += counts[w, j]
    return total / n
