# fails with: This is the sum of the squares
import numpy as np


def mean_square(x):
    return float(np.sum(x**2))
