"""What a solution of clip-by-value-or-norm must do."""

import math

import numpy as np
from grader import Check, Mistake, NoElementLoop

FUNCTIONS = {
    "clip_by_value": ("grad", "limit"),
    "clip_by_norm": ("grad", "limit"),
    "angle": ("before", "after"),
}


def signed(dtype=np.float64):
    return np.array([[0.5, -50.0], [-0.25, 8.0]], dtype)


def by_value(grad, limit):
    return np.where(np.abs(grad) > limit, np.sign(grad) * limit, grad)


def by_norm(grad, limit):
    norm = math.sqrt(np.sum(np.square(grad, dtype=np.float64)))
    return grad * min(1.0, limit / norm)


def is_new(result, grad, limit):
    return not np.shares_memory(result, grad)


SPECTRAL = Mistake(
    "This divides by the largest singular value: `np.linalg.norm(grad, 2)` of a matrix is not "
    "the root of the sum of its squares. Flatten it, or leave out the 2.",
    returns=lambda grad, limit: grad * min(1.0, limit / float(np.linalg.norm(grad, 2))),
)
NAN = Mistake(
    "Rounding made the cosine a little larger than 1, and its arccos is NaN. Clip the cosine to "
    "[-1, 1] first.",
    when=lambda result, *args: bool(np.isnan(result)),
)
DOT = Mistake(
    "`np.dot` and `@` of two matrices give a matrix. Multiply entry by entry and add up: "
    "`np.sum(before * after)`.",
    raises=TypeError,
)
ONE = "Divide the dot product by both lengths, take arccos, convert to degrees."
STEEP = math.degrees(math.atan2(50, 0.5) - math.atan2(1, 0.5))

CHECKS = [
    Check(
        "by value: every entry within the limit, with its sign",
        function="clip_by_value",
        args=lambda: (signed(), 1.0),
        returns=by_value,
        rtol=1e-5,
        message="Bring each entry into [-limit, limit]; an entry within it stays.",
        mistakes=(
            Mistake(
                "Only the upper side was clipped: -50 is as far out as 50.",
                returns=lambda grad, limit: np.minimum(grad, limit),
            ),
            Mistake(
                "The whole array was scaled by its largest entry. Value clipping looks at each "
                "entry alone.",
                returns=lambda grad, limit: grad * limit / np.abs(grad).max(),
            ),
            Mistake("This is the clip by norm.", returns=by_norm),
        ),
    ),
    Check(
        "by norm: at most the limit, same direction",
        function="clip_by_norm",
        args=lambda: (np.array([3.0, 4.0]), 1.0),
        returns=by_norm,
        rtol=1e-5,
        message="Multiply the whole array by min(1, limit / norm).",
        mistakes=(Mistake("This is the clip by value: the direction turned.", returns=by_value),),
    ),
    Check(
        "by norm: a matrix is one long vector",
        function="clip_by_norm",
        args=lambda: (np.array([[3.0, 4.0], [12.0, -84.0]]), 17.0),
        returns=by_norm,
        rtol=1e-5,
        message="The norm is the root of the sum of all squares, whatever the shape.",
        mistakes=(SPECTRAL,),
    ),
    Check(
        "by norm: below the limit nothing changes",
        function="clip_by_norm",
        args=lambda: (np.array([0.3, -0.4]), 1.0),
        returns=lambda grad, limit: grad,
        holds={"the result is a new array": is_new},
        message="A gradient that is short enough comes back as a copy, to the bit.",
        mistakes=(
            Mistake(
                "The gradient was made longer. Clipping only shortens: min(1, limit / norm).",
                returns=lambda grad, limit: grad * limit / np.linalg.norm(grad),
            ),
        ),
    ),
    Check(
        "by norm: zero stays zero",
        function="clip_by_norm",
        args=lambda: (np.zeros((2, 2)), 1.0),
        returns=lambda grad, limit: grad,
        message="A norm of 0 is below every limit: nothing to divide.",
        mistakes=(
            Mistake(
                "0/0 gave NaN. Divide only where the norm exceeds the limit.",
                when=lambda result, grad, limit: np.isnan(result).any(),
            ),
            Mistake("Divide only where the norm exceeds the limit.", raises=ZeroDivisionError),
        ),
    ),
    *(
        Check(
            f"{name}: a new array, float32 stays float32",
            function=name,
            args=lambda: (signed(np.float32), 1.0),
            result_dtype=np.float32,
            holds={"the result is a new array": is_new},
            message="Leave `grad` alone, and scale by a Python float, which keeps the dtype.",
        )
        for name in ("clip_by_value", "clip_by_norm")
    ),
    Check(
        "angle: in degrees, as a Python float",
        function="angle",
        args=lambda: (np.array([0.5, 50.0]), np.array([0.5, 1.0])),
        returns=STEEP,
        atol=1e-3,
        result_type=float,
        message=ONE,
        mistakes=(
            Mistake("This is the angle in radians.", returns=math.radians(STEEP)),
            Mistake("This is the cosine. Take its arccos.", returns=math.cos(math.radians(STEEP))),
        ),
    ),
    Check(
        "angle: 0 for equal directions",
        function="angle",
        args=lambda: (np.array([-9.0, -3.0, 3.0, -7.0]), np.array([-9.0, -3.0, 3.0, -7.0]) / 10),
        returns=0.0,
        atol=1e-3,
        message=ONE,
        mistakes=(NAN,),
    ),
    Check(
        "angle: 180 for opposite directions, of matrices too",
        function="angle",
        args=lambda: (np.array([[-9.0, 7], [-9, -1]]), -np.array([[-9.0, 7], [-9, -1]]) / 10),
        returns=180.0,
        atol=1e-3,
        message=ONE,
        mistakes=(
            NAN,
            DOT,
            Mistake(
                "The sign of the cosine was lost: opposite directions have cosine -1. Clip it to "
                "[-1, 1], without abs.",
                when=lambda result, *args: 0 <= result <= 90,
            ),
        ),
    ),
    Check(
        "angle: a matrix is one long vector",
        function="angle",
        args=lambda: (np.eye(2), np.array([[1.0, 0.0], [0.0, 0.0]])),
        returns=45.0,
        atol=1e-3,
        message="Multiply entry by entry and add up: `np.sum(before * after)`; lengths likewise.",
        mistakes=(
            Mistake(
                "The lengths are largest singular values: `np.linalg.norm(before, 2)` of a matrix "
                "is not the root of the sum of its squares. Leave out the 2.",
                returns=0.0,
            ),
            DOT,
        ),
    ),
    Check(
        "angle: 0 where there is no direction",
        function="angle",
        args=lambda: (np.zeros(2), np.ones(2)),
        returns=0.0,
        message="Return 0.0 before you divide by a length of 0.",
    ),
    *(
        NoElementLoop(
            f"{name}: no Python loop over elements",
            function=name,
            args=lambda n: (np.linspace(-3, 3, n), 1.0),
            message="NumPy clips, squares, sums and scales whole arrays.",
        )
        for name in ("clip_by_value", "clip_by_norm")
    ),
    NoElementLoop(
        "angle: no Python loop over elements",
        function="angle",
        args=lambda n: (np.linspace(-3, 3, n), np.ones(n)),
        message="NumPy multiplies and sums whole arrays.",
    ),
]
