"""What a solution of unscale-check-clip-skip must do."""

import math

import numpy as np
from grader import Check, Mistake, NoElementLoop

FUNCTIONS = {"attempt_update": ("params", "grads", "scaler", "lr", "max_norm")}
IN_PLACE = ["params", "scaler"]
BIG = 1e9  # a max_norm that nothing here reaches


def state(scale=1024.0, good=0, interval=3):
    return {"scale": scale, "good": good, "interval": interval}


def half(*values):
    return np.array(values, np.float16)


def params():
    return [np.array([1.0, -2.0], np.float32), np.array([[0.5]], np.float32)]


def grads(scale=1024.0):
    return [half(3.0, 0.0) * np.float16(scale), half([4.0]) * np.float16(scale)]


def spoiled(value):
    return [half(3072.0, 0.0), half([value])]


def norm(arrays):
    return math.sqrt(sum(float(np.sum(np.square(g, dtype=np.float64))) for g in arrays))


def updated(params, grads, scaler, lr, max_norm, divisor=0.0):
    wide = [g.astype(np.float64) / (divisor or scaler["scale"]) for g in grads]
    factor = min(1.0, max_norm / (norm(wide) + 1e-6))
    return [p - lr * factor * g for p, g in zip(params, wide, strict=True)]


def clipped_first(params, grads, scaler, lr, max_norm):
    wide = [g.astype(np.float64) for g in grads]
    factor = min(1.0, max_norm / (norm(wide) + 1e-6)) / scaler["scale"]
    return [p - lr * factor * g for p, g in zip(params, wide, strict=True)]


def lengthened(params, grads, scaler, lr, max_norm):
    wide = [g.astype(np.float64) / scaler["scale"] for g in grads]
    factor = max_norm / (norm(wide) + 1e-6)
    return [p - lr * factor * g for p, g in zip(params, wide, strict=True)]


def each_clipped(params, grads, *rest):
    pairs = zip(params, grads, strict=True)
    return [updated([p], [g], *rest)[0] for p, g in pairs]


def divided_by(times):
    def wrong(params, grads, scaler, *rest):
        return updated(params, grads, scaler, *rest, divisor=times * scaler["scale"])

    return wrong


def uphill(params, grads, scaler, lr, max_norm):
    return updated(params, grads, scaler, -lr, max_norm)


def same(params, *rest):
    return params


def log(attempt_update):
    """Accepted, scale and count of nine windows, of which three overflow."""
    weights, scaler, seen = params(), state(interval=2), []
    for bad in (True, False, False, False, True, False, True, False, False):
        accepted = attempt_update(weights, spoiled(np.inf if bad else 1.0), scaler, 0.1, 1.0)
        seen.append((accepted, scaler["scale"], scaler["good"]))
    return seen


EXPECTED_LOG = [
    (False, 512.0, 0),
    (True, 512.0, 1),
    (True, 1024.0, 0),
    (True, 1024.0, 1),
    (False, 512.0, 0),
    (True, 512.0, 1),
    (False, 256.0, 0),
    (True, 256.0, 1),
    (True, 512.0, 0),
]
ORDER = "Divide by the scale, clip the joint norm to max_norm, then subtract lr times the result."
SKIP = "If any entry of any array is infinite or NaN, return False before you write a parameter."
CHECK_FIRST = (
    Mistake(
        "A parameter became NaN or infinite: the update was made without a check, or the check "
        "came after the clip. Test np.isfinite on every array before you write.",
        when=lambda result, params, *rest: not all(np.isfinite(p).all() for p in params),
    ),
    Mistake(
        "Only the bad array was left out, the others were updated. One bad entry skips the whole "
        "update: check all arrays first.",
        when=lambda result, params, *rest: params[0][0] != 1.0,
    ),
)

CHECKS = [
    Check(
        "a long gradient: unscaled, then clipped",
        args=lambda: (params(), grads(), state(), 0.1, 1.0),
        returns=True,
        after={"params": updated},
        rtol=1e-5,
        message=ORDER,
        mistakes=(
            Mistake(
                "Clipped while still scaled: the update is `scale` times too short. Divide by "
                "the scale first, then measure and clip.",
                after={"params": clipped_first},
            ),
            Mistake(
                "Each array was clipped alone. Take one norm over all arrays, and one factor.",
                after={"params": each_clipped},
            ),
            Mistake("This goes uphill: subtract lr times the gradient.", after={"params": uphill}),
            Mistake(
                "Unscaled, but not clipped: the norm is 5, max_norm 1.",
                after={"params": lambda *args: updated(*args[:4], BIG)},
            ),
            Mistake(
                "No parameter moved. Is the norm infinite, and the factor 0? In float16 squares "
                "end at 65,504. Or does `p = p - ...` make a new array? Write `p -= ...`.",
                after={"params": same},
            ),
        ),
    ),
    Check(
        "a short gradient: unscaled only",
        args=lambda: (params(), grads(), state(), 0.1, 10.0),
        returns=True,
        after={"params": updated},
        rtol=1e-5,
        message=ORDER,
        mistakes=(
            Mistake(
                "The gradients were not unscaled: the update is `scale` times too long. Divide "
                "by the scale.",
                after={"params": lambda *args: updated(*args[:4], BIG, divisor=1.0)},
            ),
            Mistake(
                "The gradient was made longer: the factor is min(1, ...), at most 1.",
                after={"params": lengthened},
            ),
            Mistake(
                "Clipped while still scaled: this gradient is below max_norm once it is divided "
                "by the scale. Divide first, then clip.",
                after={"params": clipped_first},
            ),
        ),
    ),
    Check(
        "one infinite entry: nothing is updated",
        args=lambda: (params(), spoiled(np.inf), state(), 0.1, 1.0),
        returns=False,
        after={"params": same},
        message=SKIP,
        mistakes=CHECK_FIRST,
    ),
    Check(
        "one NaN: nothing is updated",
        args=lambda: (params(), spoiled(np.nan), state(), 0.1, 1.0),
        returns=False,
        after={"params": same},
        message=SKIP + " np.isinf does not find NaN; np.isfinite finds both.",
        mistakes=CHECK_FIRST,
    ),
    Check(
        "a skip halves the scale, and the count starts again",
        args=lambda: (params(), spoiled(-np.inf), state(good=2), 0.1, 1.0),
        after={"scaler": state(scale=512.0, good=0)},
        message="On a skip set scaler['scale'] to half and scaler['good'] to 0.",
        mistakes=(
            Mistake(
                "The scale was halved, but the count of good updates went on: it counts since "
                "the scale last changed. Set scaler['good'] to 0 on a skip.",
                when=lambda result, params, grads, scaler, *rest: (
                    scaler["scale"] == 512.0 and scaler["good"] != 0
                ),
            ),
            Mistake(
                "The scale is what it was: the next window will overflow in the same way. Halve "
                "it on a skip, in the caller's dict.",
                when=lambda result, params, grads, scaler, *rest: scaler["scale"] == 1024.0,
            ),
            Mistake(
                "The skip was counted as a good update, and the scale grew. Only accepted "
                "updates count.",
                when=lambda result, params, grads, scaler, *rest: scaler["scale"] > 1024.0,
            ),
        ),
    ),
    Check(
        "an accepted update is counted",
        args=lambda: (params(), grads(), state(), 0.1, 1.0),
        after={"scaler": state(good=1)},
        message="Add 1 to scaler['good'], in the caller's dict, and keep the scale.",
    ),
    Check(
        "after `interval` good updates the scale doubles",
        args=lambda: (params(), grads(), state(good=2), 0.1, 1.0),
        after={"scaler": state(scale=2048.0, good=0)},
        message="When scaler['good'] reaches scaler['interval'], double the scale and set the "
        "count to 0.",
        mistakes=(
            Mistake(
                "The scale doubled, but the count was not set to 0: from now on it would double "
                "at every update, or never again.",
                when=lambda result, params, grads, scaler, *rest: (
                    scaler["scale"] == 2048.0 and scaler["good"] != 0
                ),
            ),
        ),
    ),
    Check(
        "the scale changes after the division, not before",
        args=lambda: (params(), grads(), state(good=2), 0.1, BIG),
        after={"params": updated},
        rtol=1e-5,
        message=ORDER,
        mistakes=(
            Mistake(
                "The gradients were divided by the doubled scale, so the update is half as long. "
                "They carry the old one: unscale first, change the scale last.",
                after={"params": divided_by(2.0)},
            ),
        ),
    ),
    Check(
        "small gradients survive the division",
        args=lambda: (
            [np.zeros(2, np.float32)],
            [half(65536e-8, -65536e-8)],
            state(65536.0),
            1.0,
            1.0,
        ),
        after={"params": updated},
        rtol=1e-5,
        message=ORDER,
        mistakes=(
            Mistake(
                "Divided in float16, the gradient became 0 or lost its digits: that is what the "
                "scale was for. Widen with g.astype(np.float64) before you divide.",
                when=lambda result, params, *rest: abs(params[0][0]) < 2e-8,
            ),
        ),
    ),
    Check(
        "large but finite is no overflow",
        args=lambda: ([np.zeros(4, np.float32)], [np.full(4, 6e4, "f2")], state(1.0), 0.1, 1.0),
        returns=True,
        after={"params": updated},
        rtol=1e-5,
        message="Every entry is finite, so the update must be made. Square in float64: in float16 "
        "squares and sums end at 65,504.",
    ),
    Check(
        "nine windows, three of them overflow",
        run=log,
        returns=EXPECTED_LOG,
        message="The entries are (accepted, scale, good) after each window, with interval 2. "
        "Follow the five rules window by window.",
    ),
    NoElementLoop(
        "no Python loop over elements",
        args=lambda n: (
            [np.ones(n, np.float32), np.ones((n, 2), np.float32)],
            [np.ones(n, np.float16), np.ones((n, 2), np.float16)],
            state(),
            0.1,
            1.0,
        ),
        message="Let NumPy divide, check, sum and scale whole arrays; a loop over a list is fine.",
    ),
]
