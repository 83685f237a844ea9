"""What a solution of overflow-safe-norm must do."""

import math

import numpy as np
from grader import Check, Mistake, NoElementLoop

FUNCTIONS = {"safe_norm": ("grads",)}
INF, NAN = float("inf"), float("nan")


def pair(size, dtype):
    """3 and 4 times `size`, in two arrays: their norm is 5 times as much."""
    return ([np.array([3 * size], dtype), np.array([[0.0, 4 * size]], dtype)],)


def mixed():
    return ([np.full(65536, 300.0, np.float16), np.array(5e4, np.float32), np.array([9e4])],)


def overflow(dtype, cure):
    text = f"A finite gradient came out infinite: a square overflowed in {dtype}. {cure}"
    return Mistake(text, returns=INF)


def underflow(dtype, cure):
    text = f"A gradient that is not zero has norm 0: its squares vanished in {dtype}. {cure}"
    return Mistake(text, returns=0.0)


def undefined(text):
    return Mistake(text, when=lambda result, grads: math.isnan(result))


WIDEN = "Convert to float64 before you square."
SCALE = "Divide by the largest absolute entry before you square, and multiply the root by it."
NOT_FINITE = "Look at the largest absolute entry before you divide by it: it is not finite here."

CHECKS = [
    Check(
        "one norm over all arrays, as a Python float",
        args=lambda: pair(1.0, np.float32),
        returns=5.0,
        rtol=1e-6,
        result_type=float,
        message="Square every entry of every array, add up, take one root, return float(...).",
        mistakes=(Mistake("Add up the squares of the norms, not the norms.", returns=7.0),),
    ),
    Check(
        "float32: 1e20",
        args=lambda: pair(1e20, np.float32),
        returns=5e20,
        rtol=1e-6,
        message=WIDEN,
        mistakes=(overflow("float32", WIDEN),),
    ),
    Check(
        "float32: 1e-23",
        args=lambda: pair(2.5e-24, np.float32),
        returns=1.25e-23,
        rtol=1e-6,
        message=WIDEN,
        mistakes=(underflow("float32", WIDEN),),
    ),
    Check(
        "float16: a norm beyond its largest number",
        args=lambda: ([np.full(65536, 300.0, np.float16)],),
        returns=76800.0,
        rtol=1e-6,
        message=WIDEN,
        mistakes=(overflow("float16", WIDEN),),
    ),
    Check(
        "float16, float32 and float64 in one list",
        args=mixed,
        returns=math.sqrt(65536 * 300.0**2 + 5e4**2 + 9e4**2),
        rtol=1e-6,
        message=WIDEN,
        mistakes=(overflow("float16", WIDEN),),
    ),
    Check(
        "float64: 1e200",
        args=lambda: pair(1e200, np.float64),
        returns=5e200,
        rtol=1e-6,
        message=SCALE,
        mistakes=(overflow("float64", SCALE),),
    ),
    Check(
        "float64: 1e-200",
        args=lambda: pair(1e-200, np.float64),
        returns=5e-200,
        rtol=1e-6,
        message=SCALE,
        mistakes=(underflow("float64", SCALE),),
    ),
    Check(
        "float64: the smallest number above 0",
        args=lambda: pair(5e-324, np.float64),
        returns=2.5e-323,
        rtol=1e-6,
        message=SCALE,
        mistakes=(
            Mistake(
                "1 / m overflows for this m, although g / m does not. Divide by m.",
                when=lambda result, grads: not math.isfinite(result),
            ),
            underflow("float64", SCALE),
        ),
    ),
    Check(
        "float64: -1e200",
        args=lambda: pair(-1e200, np.float64),
        returns=5e200,
        rtol=1e-6,
        message=SCALE,
        mistakes=(
            Mistake(
                "All entries are negative, or 0, and the largest was taken with its sign. Take the "
                "largest *absolute* entry: `np.abs(g)` first.",
                returns=0.0,
            ),
            overflow("float64", SCALE),
        ),
    ),
    Check(
        "very large beside very small",
        args=lambda: ([np.array([1e-23], np.float32), np.array([1e200, 1e-200])],),
        returns=1e200,
        rtol=1e-6,
        message="Use one largest entry for all arrays.",
        mistakes=(overflow("float64", SCALE),),
    ),
    Check(
        "an infinite entry gives infinity",
        args=lambda: ([np.array([1.0]), np.array([-INF, 2.0], np.float32)],),
        returns=INF,
        message=NOT_FINITE,
        mistakes=(
            undefined(f"inf / inf gave NaN, and there is no NaN in this gradient. {NOT_FINITE}"),
            Mistake(
                "The infinite entry went unseen. Who clips with this norm must learn of it.",
                when=lambda result, grads: math.isfinite(result),
            ),
        ),
    ),
    Check(
        "a NaN gives NaN, beside an infinity too",
        args=lambda: ([np.array([INF, 1.0]), np.array([NAN], np.float32)],),
        returns=NAN,
        message="NaN goes first: `np.max` passes it on, Python's `max` may not.",
        mistakes=(
            Mistake("The NaN is lost beside the infinity. Look for NaN first.", returns=INF),
            Mistake(
                "The NaN went unseen. Who clips with this norm must learn of it.",
                when=lambda result, grads: math.isfinite(result),
            ),
        ),
    ),
    Check(
        "all zeros have norm 0",
        args=lambda: ([np.zeros(3), np.zeros((2, 2), np.float16)],),
        returns=0.0,
        message="Return 0.0 before you divide by 0.",
        mistakes=(
            undefined("0/0 gave NaN. Return 0.0 before you divide by 0."),
            Mistake("Return 0.0 before you divide by 0.", raises=ZeroDivisionError),
        ),
    ),
    *(
        Check(
            name,
            args=args,
            returns=right,
            message="Nothing to add up gives 0.",
            mistakes=(
                Mistake("No entry is the largest of none: say `initial=0.0`.", raises=ValueError),
            ),
        )
        for name, args, right in (
            ("an empty array adds nothing", lambda: ([np.zeros((0, 3)), np.array([2.0])],), 2.0),
            ("an empty list has norm 0", lambda: ([],), 0.0),
        )
    ),
    NoElementLoop(
        "no Python loop over elements",
        args=lambda n: ([np.linspace(-1, 1, n), np.ones((n, 2), np.float32)],),
        message="Let NumPy find the largest, divide, square and sum; a loop over the list is fine.",
    ),
]
