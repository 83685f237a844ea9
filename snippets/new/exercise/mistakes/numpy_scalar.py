# fails with: Convert the mean with float(...)
import numpy as np


def mean_square(x):
    return np.mean(x**2)
