"""What a solution of my-exercise must do."""

import math

import numpy as np
from grader import Check, Mistake, NoElementLoop

FUNCTIONS = {"mean_square": ("x",)}


def mean_square(x):
    return math.fsum(float(value) ** 2 for value in x.flat) / x.size


CHECKS = [
    Check(
        "the mean of the squares",
        args=lambda: (np.array([3.0, 4.0]),),
        returns=12.5,
        rtol=1e-6,
        message="Square every entry, then take the mean of the squares.",
        mistakes=(
            Mistake("This is the sum of the squares. Divide it by their number.", returns=25.0),
            Mistake("This is the square of the mean. Square first, then average.", returns=12.25),
        ),
    ),
    Check(
        "any shape",
        args=lambda: (np.arange(24.0).reshape(2, 3, 4),),
        returns=mean_square,
        rtol=1e-6,
        message="Take the mean over all entries, whatever the shape.",
    ),
    Check(
        "returns a Python float",
        args=lambda: (np.ones(3),),
        result_type=float,
        message="Convert the mean with float(...).",
    ),
    NoElementLoop(
        "no Python loop over elements",
        args=lambda n: (np.linspace(-1, 1, n),),
        message="Let NumPy square and average the whole array.",
    ),
]
