"""What a solution of float16-bound must do."""

import math

import numpy as np
from grader import Check, Mistake, NoElementLoop

FUNCTIONS = {"clip_float16": ("grads", "max_norm")}
IN_PLACE = ["grads"]


def fifty():
    return [np.full(50, 7.0, np.float16)]


def mixed():
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(np.float16) for shape in ((2, 3, 4), 100, (7, 11))]


def shapes():
    table = np.arange(12.0, dtype=np.float16).reshape(3, 4)
    return [np.array(2.0, np.float16), np.zeros((0, 3), np.float16), table[:, 1], table.T[2:]]


def beyond():
    return [np.full((256, 256), 300.0, np.float16)]


def norm(grads):
    return math.sqrt(sum(float(np.sum(np.square(g, dtype=np.float64))) for g in grads))


def exact(grads, max_norm):
    factor = min(1.0, max_norm / max(norm(grads), 1e-300))
    return [g.astype(np.float64) * factor for g in grads]


def within(result, grads, max_norm):
    return norm(grads) <= max_norm


def changed_by_second_call(clip):
    grads = mixed()
    clip(grads, 1.0)
    once = [g.copy() for g in grads]
    clip(grads, 1.0)
    return int(sum(np.sum(a != b) for a, b in zip(once, grads, strict=True)))


BOUND = {"the stored norm, measured in float64, is at most max_norm": within}
AIM = "Scale to max_norm * (1 - 2**-11) - 2**-25 * sqrt(n), in float64, and round once."
WIDEN = "Widen each array to float64 before you square, sum or scale."
ONE_FACTOR = "Multiply every entry of every array by the same target / norm, in place."
ROUNDED_UP = Mistake(
    "The stored gradients are longer than max_norm: storing in float16 rounded entries up. Aim "
    "at max_norm * (1 - 2**-11), and compute factor and product in float64, so that only the "
    "store rounds.",
    when=lambda result, grads, max_norm: max_norm < norm(grads) < 1.01 * max_norm,
)
EVEN_SPACING = Mistake(
    "Below 2**-14 a relative margin is too small: there float16 numbers lie 2**-24 apart, and "
    "rounding may add 2**-25 to each entry however small it is. Subtract 2**-25 * sqrt(n) from "
    "the target as well; n counts the entries of all arrays.",
    when=lambda result, grads, max_norm: max_norm < norm(grads) < 1.5 * max_norm,
)
TOO_SHORT = Mistake(
    "The margin is too wide. Rounding adds at most 2**-11, so aim only that much lower.",
    when=lambda result, grads, max_norm: 0.5 * max_norm < norm(grads) < 0.998 * max_norm,
)
EACH_ALONE = Mistake(
    "Each array was clipped alone, so together they are longer than max_norm. Take one norm over "
    "all arrays and one factor.",
    after={"grads": lambda grads, max_norm: [exact([g], max_norm)[0] for g in grads]},
)
OVERFLOW = Mistake(
    "The norm came out infinite: squares and sums in float16 end at 65,504. " + WIDEN,
    when=lambda result, grads, max_norm: math.isinf(result),
)
UNDERFLOW = Mistake(
    "A finite gradient was erased: the factor is below 6e-8, so it is 0 in float16. `g *= factor` "
    "rounds the factor to float16 first. Multiply g.astype(np.float64), then store.",
    when=lambda result, grads, max_norm: math.isfinite(result) and not np.any(grads[0]),
)

CHECKS = [
    Check(
        "the bound is met as stored: fifty entries of 7",
        args=lambda: (fifty(), 1.0),
        holds=BOUND,
        message=AIM,
        mistakes=(ROUNDED_UP,),
    ),
    Check(
        "returns the norm before clipping, a Python float",
        args=lambda: (fifty(), 1.0),
        returns=math.sqrt(50 * 49),
        result_type=float,
        rtol=1e-6,
        message="Square in float64, add up over all arrays, take one root, convert by float(...).",
    ),
    Check(
        "the bound is met as stored: three arrays together",
        args=lambda: (mixed(), 0.7),
        holds=BOUND,
        message=AIM,
        rtol=2e-3,
        atol=2.0**-24,
        mistakes=(EACH_ALONE, ROUNDED_UP),
    ),
    Check(
        "one factor: the direction stays",
        args=lambda: (mixed(), 0.7),
        after={"grads": exact},
        rtol=2e-3,
        atol=2.0**-24,
        message=ONE_FACTOR,
        mistakes=(EACH_ALONE, TOO_SHORT),
    ),
    Check(
        "a second call changes nothing",
        run=changed_by_second_call,
        returns=0,
        message="The first call must leave a norm of at most max_norm; then the second finds "
        "nothing to do.",
        mistakes=(
            Mistake(
                "The second call changed entries again. If the norm is at most max_norm, return "
                "before anything is multiplied.",
                when=lambda result: result > 0,
            ),
        ),
    ),
    Check(
        "at max_norm nothing changes",
        args=lambda: ([np.array([3.0, -4.0], np.float16)], 5.0),
        returns=5.0,
        after={"grads": lambda grads, max_norm: grads},
        rtol=1e-6,  # far below the spacing of float16
        message="A norm of max_norm is allowed. Compare the norm with max_norm itself, and scale "
        "to the lower target only if max_norm is exceeded.",
    ),
    Check(
        "not shorter than needed",
        args=lambda: (mixed(), 1.0),
        holds={
            "the stored norm is at least 0.998 * max_norm": lambda result, grads, max_norm: (
                norm(grads) >= 0.998 * max_norm
            )
        },
        message=AIM,
        mistakes=(TOO_SHORT,),
    ),
    Check(
        "a norm beyond 65504",
        args=lambda: (beyond(), 1.0),
        returns=76_800.0,
        after={"grads": exact},
        rtol=2e-3,
        message=WIDEN,
        mistakes=(OVERFLOW, UNDERFLOW, TOO_SHORT),
    ),
    Check(
        "a factor below what float16 can hold",
        args=lambda: (beyond(), 1e-3),
        after={"grads": exact},
        holds=BOUND,
        rtol=2e-3,
        atol=2.0**-24,
        message=f"{WIDEN} {AIM}",
        mistakes=(OVERFLOW, UNDERFLOW, EVEN_SPACING),
    ),
    Check(
        "a threshold of 1.6e-6, where the spacing is even",
        args=lambda: ([np.ones((10, 10), np.float16), np.ones(100, np.float16)], 1.6e-6),
        holds=BOUND,
        message=AIM,
        mistakes=(EVEN_SPACING,),
    ),
    Check(
        "any shapes, and views",
        args=lambda: (shapes(), 0.5),
        returns=lambda grads, max_norm: norm(grads),
        after={"grads": exact},
        holds=BOUND,
        rtol=2e-3,
        atol=2.0**-24,
        message="Write g[...] = ...: it keeps dtype and shape, also of views and 0-d arrays.",
        mistakes=(EACH_ALONE, TOO_SHORT),
    ),
    Check(
        "all zeros stay zeros, and an empty list has norm 0",
        run=lambda clip: [clip([np.zeros(3, np.float16)], 1.0), clip([], 1.0)],
        returns=[0.0, 0.0],
        message="A norm of 0 is below max_norm: return before you divide by it.",
    ),
    NoElementLoop(
        "no Python loop over elements",
        args=lambda n: ([np.linspace(-1, 1, n).astype(np.float16), np.ones((n, 2), "f2")], 1.0),
        message="Let NumPy square, sum and scale whole arrays; a loop over the list is fine.",
    ),
]
