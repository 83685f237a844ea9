# fails with: The work in Python grows
import numpy as np


def window_means(means, counts):
    rows = []
    for row, n in zip(means, counts, strict=True):
        kept = n > 0
        sums = np.tensordot(n[kept], row[kept], 1)
        rows.append(sums / n.sum() if n.sum() else np.full(means.shape[2:], np.nan))
    return np.array(rows)


def run_mean(means, counts):
    return window_means(means.reshape(1, -1, *means.shape[2:]), counts.reshape(1, -1))[0]
