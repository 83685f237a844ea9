# fails with: This is the square of the mean
import numpy as np


def mean_square(x):
    return float(np.mean(x) ** 2)
