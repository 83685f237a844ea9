"""What a solution of sharded-norm must do."""

import contextlib
import math

import numpy as np
from grader import Check, Mistake, NoElementLoop
from grader_learner import Raised

FUNCTIONS = {
    "local_squares": ("shards", "replicated", "rank"),
    "clip_shards": ("grads", "total", "max_norm"),
}
IN_PLACE = ["grads"]
REPLICATED = [False, False, True]


def three_ranks():
    """Rank by rank: a tensor in shards of 3, 1 and 0 rows, one on ranks 0 and 2, and a copy."""
    rng = np.random.default_rng(0)
    rows, spread = [3, 1, 0], [2, 0, 3]
    copy = rng.normal(size=3)
    shards = [
        [rng.normal(size=(r, 2)), rng.normal(size=s)] for r, s in zip(rows, spread, strict=True)
    ]
    return [[*own, copy.copy()] for own in shards]


def square(g):
    return float(np.sum(np.square(g, dtype=np.float64)))


def own_norm(grads):
    return math.sqrt(sum(map(square, grads)))


def whole_norm(ranks, copies=1):
    sharded = sum(square(g) for own in ranks for g in own[:2])
    return math.sqrt(sharded + copies * square(ranks[0][2]))


def clipped(grads, norm, max_norm):
    return [g * min(1.0, max_norm / (norm + 1e-6)) for g in grads]


def all_ranks(local_squares, clip_shards):
    """Both functions on every rank, with the all-reduce between them."""
    ranks = three_ranks()
    total = sum(local_squares(own, REPLICATED, r) for r, own in enumerate(ranks))
    return {"norms": [clip_shards(own, total, 1.0) for own in ranks], "grads": ranks}


def after_nan(local_squares, clip_shards):
    """What `clip_shards` leaves of finite arrays when the total is NaN."""
    grads = [np.array([3.0, 4.0])]
    with contextlib.suppress(Raised):  # whether it raises is another test
        clip_shards(grads, math.nan, 1.0)
    return grads


NORM = whole_norm(three_ranks())
NOT_FINITE = (
    "Every rank gets the same total, so each can tell: if the norm is not finite, raise "
    "FloatingPointError."
)
HIDDEN = Mistake(
    "It was hidden, and no rank will ever know. Contribute it as it is: a sum with a NaN or an "
    "infinity is not finite, and so reaches all ranks.",
    when=lambda result, *args: math.isfinite(result),
)
TOO_SOON = Mistake(
    "This rank raised before the exchange: the others, whose shards are finite, would wait for "
    "it. Contribute what you have, and raise in clip_shards, as every rank does.",
    raises=FloatingPointError,
)

CHECKS = [
    Check(
        "a rank contributes the squares of its shards",
        args=lambda: ([np.array([[1.0, 2.0]]), np.array([2.0])], [False, False], 1),
        returns=9.0,
        rtol=1e-6,
        message="Square every entry of every array and add up, in float64.",
        mistakes=(
            Mistake(
                "This is a norm. Norms of shards do not add up, their squares do: leave the root "
                "to clip_shards.",
                returns=3.0,
            ),
            Mistake(
                "These are norms, added up. Contribute the sum of the squares.",
                returns=math.sqrt(5) + 2,
            ),
        ),
    ),
    Check(
        "a copy counts on rank 0",
        args=lambda: ([np.array([1.0, 2.0]), np.array([4.0])], [False, True], 0),
        returns=21.0,
        rtol=1e-6,
        message="On rank 0, add up the squares of all arrays.",
        mistakes=(
            Mistake(
                "The copy was left out here too, so it counts nowhere. Rank 0 counts it.",
                returns=5.0,
            ),
            Mistake(
                "Only the copy was counted. Rank 0 has shards of its own: count them as well.",
                returns=16.0,
            ),
        ),
    ),
    Check(
        "a copy counts on no other rank",
        args=lambda: ([np.array([2.0]), np.array([4.0])], [False, True], 1),
        returns=4.0,
        rtol=1e-6,
        message="On ranks other than 0, leave out the arrays that are replicated.",
        mistakes=(
            Mistake(
                "The copies were counted on every rank. They are one gradient: count a "
                "replicated array on rank 0 only.",
                returns=20.0,
            ),
        ),
    ),
    Check(
        "an empty shard contributes 0",
        args=lambda: ([np.zeros((0, 2)), np.zeros(0)], [False, False], 2),
        returns=0.0,
        message="A sum over no entry is 0.0. A rank with nothing to add takes part all the same.",
        mistakes=(
            Mistake(
                "A rank with nothing to add left without a number. It has to take part in the "
                "all-reduce, or the others wait for it: return 0.0.",
                when=lambda result, *args: result is None,
            ),
            Mistake("The mean of no entry is NaN. Add up squares.", when=lambda r, *args: r != r),
        ),
    ),
    Check(
        "float32 squares are added in float64",
        args=lambda: ([np.array([3e20, 4e20], np.float32)], [False], 0),
        returns=25e40,
        rtol=1e-6,
        message="Convert before you square: `np.square(g, dtype=np.float64)`.",
        mistakes=(
            Mistake(
                "The squares overflowed in float32, though the norm, 5e20, is finite: all ranks "
                "would refuse this gradient. Convert before you square: "
                "`np.square(g, dtype=np.float64)`.",
                returns=math.inf,
            ),
        ),
    ),
    Check(
        "returns the norm of all shards, before clipping",
        function="clip_shards",
        args=lambda: ([np.array([3.0])], 25.0, 1.0),
        returns=5.0,
        rtol=1e-6,
        message="`total` is a sum of squares: the norm is its root.",
        mistakes=(
            Mistake(
                "This is the norm of one rank's arrays. `total` holds the squares of all ranks: "
                "take its root.",
                returns=3.0,
            ),
            Mistake("`total` is a sum of squares, and the root is missing.", returns=25.0),
            Mistake("This is the norm after clipping. Return the norm before it.", returns=1.0),
        ),
    ),
    Check(
        "one coefficient for all arrays, in place",
        function="clip_shards",
        args=lambda: ([np.array([3.0]), np.zeros((0, 2)), np.array([[2.0, -1.0]])], 25.0, 1.0),
        after={"grads": lambda grads, total, max_norm: clipped(grads, 5.0, max_norm)},
        rtol=1e-6,
        message="Scale every array by min(1, max_norm / (norm + 1e-6)), with `g *= scale`.",
        mistakes=(
            Mistake(
                "This rank clipped by its own norm, so every rank has another coefficient and "
                "the gradient turns. Use the root of `total`, which is the same on all.",
                after={
                    "grads": lambda grads, total, max_norm: clipped(
                        grads, own_norm(grads), max_norm
                    )
                },
            ),
            Mistake(
                "The coefficient was made with the squared norm. Take the root of `total` first.",
                after={"grads": lambda grads, total, max_norm: clipped(grads, 25.0, max_norm)},
            ),
        ),
    ),
    Check(
        "below max_norm nothing changes",
        function="clip_shards",
        args=lambda: ([np.array([3.0])], 25.0, 30.0),
        after={"grads": lambda grads, total, max_norm: grads},
        message="The coefficient is min(1, ...): at most 1.",
        mistakes=(
            Mistake(
                "The gradients grew until their norm was max_norm. The coefficient is min(1, ...).",
                after={"grads": lambda grads, *rest: [g * 30 / (5 + 1e-6) for g in grads]},
            ),
        ),
    ),
    Check(
        "float32 stays float32",
        function="clip_shards",
        args=lambda: ([np.array([3.0], np.float32)], 25.0, 1.0),
        after={"grads": lambda grads, total, max_norm: clipped(grads, 5.0, max_norm)},
        rtol=1e-6,
        message="Scale by the coefficient of the norm of all shards, with `g *= scale`.",
    ),
    Check(
        "three ranks, uneven shards: one norm",
        run=all_ranks,
        returns={"norms": [NORM] * 3, "grads": [clipped(own, NORM, 1.0) for own in three_ranks()]},
        rtol=1e-6,
        message="Here `total` is what the contributions of all ranks add up to. The tests of each "
        "function, above, tell more.",
        mistakes=(
            Mistake(
                "A contribution was no number, so there is no total. See the tests above.",
                when=lambda result: isinstance(result, TypeError),
            ),
            Mistake(
                "The copies were counted on every rank. Count a replicated array on rank 0 only.",
                when=lambda result: np.allclose(result["norms"], whole_norm(three_ranks(), 3)),
            ),
            Mistake(
                "Each rank clipped by its own norm: several coefficients turn the gradient.",
                when=lambda result: np.allclose(
                    result["norms"], [own_norm(own) for own in three_ranks()]
                ),
            ),
        ),
    ),
    Check(
        "a NaN is contributed, not hidden",
        args=lambda: ([np.array([1.0, math.nan])], [False], 1),
        returns=math.nan,
        message="Add it up like any other entry: NaN plus anything is NaN.",
        mistakes=(HIDDEN, TOO_SOON),
    ),
    Check(
        "an infinity is contributed, not hidden",
        args=lambda: ([np.array([1.0, -math.inf])], [False], 1),
        returns=math.inf,
        message="Add it up like any other entry: the square of an infinity is infinite.",
        mistakes=(HIDDEN, TOO_SOON),
    ),
    Check(
        "a NaN elsewhere raises on this rank",
        function="clip_shards",
        args=lambda: ([np.array([3.0])], math.nan, 1.0),
        raises=FloatingPointError,
        message=f"{NOT_FINITE} `min(1.0, nan)` is 1.0 in Python.",
    ),
    Check(
        "an infinity elsewhere raises on this rank",
        function="clip_shards",
        args=lambda: ([np.array([3.0])], math.inf, 1.0),
        raises=FloatingPointError,
        message=f"{NOT_FINITE} Here the coefficient would be 0, and erase all gradients.",
    ),
    Check(
        "nothing is changed by the error",
        run=after_nan,
        returns=[np.array([3.0, 4.0])],
        message="Look at the norm first, then scale.",
        mistakes=(
            Mistake(
                "The arrays were scaled by NaN before the error. Look at the norm first, then "
                "scale.",
                when=lambda result: np.isnan(result[0]).any(),
            ),
        ),
    ),
    NoElementLoop(
        "no Python loop over elements before the exchange",
        args=lambda n: ([np.linspace(-1, 1, n), np.ones((n, 2))], [False, True], 0),
        message="Let NumPy square and sum whole arrays; a loop over the list is fine.",
    ),
    NoElementLoop(
        "no Python loop over elements after it",
        function="clip_shards",
        args=lambda n: ([np.linspace(-1, 1, n), np.ones((n, 2))], 9.0, 1.0),
        message="Let NumPy scale whole arrays; a loop over the list is fine.",
    ),
]
