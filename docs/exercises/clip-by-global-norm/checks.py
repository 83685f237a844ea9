"""What a solution of clip-by-global-norm must do."""

import math

import numpy as np
from grader import Check, Mistake, NoElementLoop

FUNCTIONS = {"clip_grad_norm": ("grads", "max_norm")}
IN_PLACE = ["grads"]


def worked(dtype=np.float64):
    return [np.array([3.0], dtype), np.array([4.0, 0.0], dtype)]


def shapes():
    rng = np.random.default_rng(0)
    return [np.array(2.0), np.zeros((0, 3)), rng.normal(size=(2, 3, 4)), rng.normal(size=5)]


def views():
    table = np.arange(12.0).reshape(3, 4)
    return [table[:, 1], table.T[2:]]


def norm(grads):
    return math.sqrt(sum(float(np.sum(np.square(g, dtype=np.float64))) for g in grads))


def clipped(grads, max_norm):
    return [g * min(1.0, max_norm / (norm(grads) + 1e-6)) for g in grads]


def scaled_up(grads, max_norm):
    return [g * max_norm / (norm(grads) + 1e-6) for g in grads]


EACH_ALONE = Mistake(
    "Each array was clipped alone: the two entries come out equal, while the true gradient says "
    "4/3. Take one norm over all arrays, then multiply all of them by one factor.",
    after={"grads": lambda grads, max_norm: [clipped([g], max_norm)[0] for g in grads]},
)
WHOLE = "Square every entry of every array, add up, take one root; scale all by one factor."

CHECKS = [
    Check(
        "returns the norm before clipping",
        args=lambda: (worked(), 1.0),
        returns=5.0,
        rtol=1e-6,
        message="Square every entry of every array, add up and take one root, before you scale.",
        mistakes=(
            Mistake("This is the norm after clipping. Return the norm before it.", returns=1.0),
            Mistake(
                "These are norms, added up, or absolute values. Add up the squares; take one root.",
                returns=7.0,
            ),
            Mistake("This is the square of the norm: the root is missing.", returns=25.0),
        ),
    ),
    Check(
        "returns a Python float",
        args=lambda: (worked(np.float32), 1.0),
        result_type=float,
        message="Convert the norm with float(...).",
    ),
    Check(
        "one factor for all arrays",
        args=lambda: (worked(), 1.0),
        after={"grads": clipped},
        rtol=1e-5,
        message="Multiply every array by min(1, max_norm / (norm + 1e-6)), in place.",
        mistakes=(EACH_ALONE,),
    ),
    Check(
        "in place: the caller's arrays change",
        args=lambda: ([np.array([30.0, -40.0])], 1.0),
        after={"grads": clipped},
        rtol=1e-5,
        message="`g = g * scale` makes a new array. Write `g *= scale` or `g[...] = ...`.",
        mistakes=(
            Mistake(
                "The entries were added up before they were squared, so -40 takes away from 30. "
                "Square first, then add up.",
                after={"grads": lambda grads, max_norm: [g / (10 + 1e-6) for g in grads]},
            ),
        ),
    ),
    Check(
        "below max_norm nothing changes",
        args=lambda: (worked(), 10.0),
        after={"grads": lambda grads, max_norm: grads},
        message="The factor is min(1, ...): at most 1.",
        mistakes=(
            Mistake(
                "The gradients grew until their norm was max_norm. Clipping only ever shrinks: "
                "the factor is min(1, ...).",
                after={"grads": scaled_up},
            ),
        ),
    ),
    Check(
        "any shapes: 0-d, empty, 3-d",
        args=lambda: (shapes(), 0.5),
        returns=lambda grads, max_norm: norm(grads),
        after={"grads": clipped},
        rtol=1e-5,
        message=WHOLE,
    ),
    Check(
        "all zeros stay zeros",
        args=lambda: ([np.zeros(3), np.zeros((2, 2))], 1.0),
        returns=0.0,
        after={"grads": lambda grads, max_norm: grads},
        message="Divide by norm + 1e-6, which is never 0.",
        mistakes=(
            Mistake(
                "0/0 gave NaN. Divide by norm + 1e-6, which is never 0.",
                when=lambda result, grads, max_norm: np.isnan(grads[0]).any(),
            ),
            Mistake("Divide by norm + 1e-6, which is never 0.", raises=ZeroDivisionError),
        ),
    ),
    Check(
        "an empty list has norm 0",
        args=lambda: ([], 1.0),
        returns=0.0,
        message="Nothing to add up gives 0.",
        mistakes=(
            Mistake(
                "NumPy joins no empty list of arrays. Sum the squares array by array instead.",
                raises=ValueError,
            ),
        ),
    ),
    Check(
        "views that are not contiguous",
        args=lambda: (views(), 2.0),
        returns=lambda grads, max_norm: norm(grads),
        after={"grads": clipped},
        rtol=1e-5,
        message=WHOLE,
        mistakes=(
            Mistake(
                "`reshape(-1)` and `ravel()` copy such an array. Write into the array itself.",
                when=lambda result, grads, max_norm: np.array_equal(grads[1], views()[1]),
            ),
        ),
    ),
    Check(
        "float32 stays float32",
        args=lambda: ([np.full((2, 3), 2.0, np.float32), np.ones(4, np.float32)], 1.0),
        after={"grads": lambda grads, max_norm: [g.astype("f4") for g in clipped(grads, max_norm)]},
        rtol=1e-5,
        message=WHOLE,
    ),
    NoElementLoop(
        "no Python loop over elements",
        args=lambda n: ([np.linspace(-1, 1, n), np.ones((n, 2))], 1.0),
        message="Let NumPy square, sum and scale whole arrays; a loop over the list is fine.",
    ),
]
