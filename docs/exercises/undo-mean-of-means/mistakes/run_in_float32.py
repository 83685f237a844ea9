# fails with: The result differs. Add up in float64
import numpy as np


def window_means(means, counts):
    weights = counts.reshape(counts.shape + (1,) * (means.ndim - 2))
    sums = np.sum(np.where(weights > 0, means, 0) * weights, axis=1, dtype=np.float64)
    totals = np.broadcast_to(np.sum(weights, axis=1), sums.shape)
    return np.divide(sums, totals, out=np.full(sums.shape, np.nan), where=totals > 0)


def run_mean(means, counts):
    m = np.where(counts.reshape(counts.shape + (1,) * (means.ndim - 2)) > 0, means, 0).astype(
        means.dtype
    )
    c = counts.astype(means.dtype)
    return np.tensordot(c, m, axes=2) / c.sum()
