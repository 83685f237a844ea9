"""What a solution of token-right-ranks must do."""

import numpy as np
from grader import Check, Mistake, NoElementLoop

FUNCTIONS = {"scale_for_average": ("grads", "counts")}
IN_PLACE = ["grads"]


def worked(dtype=np.float64):
    grads = [[np.array([10.0], dtype)], [np.array([4.0], dtype)]]
    return grads, np.array([[1, 0], [1, 3]])


def uneven():
    rng = np.random.default_rng(0)
    grads = [[rng.normal(size=(3, 2)), rng.normal(size=5), np.array(2.0)] for _ in range(3)]
    return grads, np.array([[4, 2, 0, 0], [1, 0, 0, 0], [30, 7, 5, 4]])


def one_without_targets():
    grads = [[np.array([6.0, -3.0])], [np.zeros(2)], [np.array([1.0, 5.0])]]
    return grads, np.array([[2, 1], [0, 0], [3, 2]])


def scaled(grads, factors):
    return [[g * factor for g in own] for own, factor in zip(grads, factors, strict=True)]


def alike(factor):
    """Contents after one factor for all ranks, a function of ranks, targets and counts."""
    return lambda grads, counts: scaled(
        grads, [factor(len(grads), counts.sum(), counts)] * len(grads)
    )


right = alike(lambda ranks, targets, counts: ranks / targets)

OWN_COUNT = Mistake(
    "Each rank was divided by its own targets: these are gradients of local means, and their "
    "average weighs ranks, not targets. Use N, the targets of all ranks, on every rank.",
    after={"grads": lambda grads, counts: scaled(grads, 1 / counts.sum(axis=1))},
)
NO_WORLD_SIZE = Mistake(
    "The average comes out R times too small: DDP divides by R once more. Multiply by the "
    "number of ranks, too: the factor is R / N.",
    after={"grads": alike(lambda ranks, targets, counts: 1 / targets)},
)
FACTOR = "Multiply every array of every rank by R / N, in place."
MISTAKES = (
    OWN_COUNT,
    NO_WORLD_SIZE,
    Mistake(
        "You divided by R as well. DDP does that already, so its average is too small by R "
        "squared. Multiply by R: the factor is R / N.",
        after={"grads": alike(lambda ranks, targets, counts: 1 / (targets * ranks))},
    ),
    Mistake(
        "This counts microbatches, not targets. Add up `counts`: N is its sum, not its size.",
        after={"grads": alike(lambda ranks, targets, counts: ranks / counts.size)},
    ),
    Mistake(
        "R is the number of ranks, `len(grads)`. It is not the number of microbatches of a rank.",
        after={"grads": alike(lambda ranks, targets, counts: counts.shape[1] / targets)},
    ),
    Mistake(
        "This multiplies by the number of microbatches, too. DDP divides by ranks only: the "
        "factor is R / N.",
        after={"grads": alike(lambda ranks, targets, counts: counts.size / targets)},
    ),
    Mistake(
        "The share n_r / N is the weight of a local *mean*. These are gradients of sums, which "
        "have that weight already: one factor R / N for all ranks.",
        after={
            "grads": lambda grads, counts: scaled(
                grads, len(grads) * counts.sum(axis=1) / counts.sum()
            )
        },
    ),
)

CHECKS = [
    Check(
        "the average over ranks is the global mean",
        args=worked,
        after={"grads": right},
        rtol=1e-6,
        message=FACTOR,
        mistakes=MISTAKES,
    ),
    Check(
        "returns the targets of all ranks",
        args=worked,
        returns=5,
        message="Return N: all entries of `counts`, added up.",
        mistakes=(
            Mistake(
                "This is the number of targets on one rank. Add up the whole of `counts`.",
                when=lambda result, grads, counts: result in counts.sum(axis=1),
            ),
            Mistake("This is the factor. Return N, the count.", returns=0.4),
        ),
    ),
    Check(
        "three ranks, many tensors, short ranks",
        args=uneven,
        returns=53,
        after={"grads": right},
        rtol=1e-6,
        message=f"{FACTOR} Return N, the sum of `counts`.",
        mistakes=MISTAKES,
    ),
    Check(
        "a rank without targets takes part with zeros",
        args=one_without_targets,
        after={"grads": right},
        rtol=1e-6,
        message="Multiply every array by R / N; R counts all ranks.",
        mistakes=(
            Mistake(
                "0/0 on the rank without targets gave NaN, and the average carries it to every "
                "rank. No rank divides by its own count: the factor is R / N.",
                when=lambda result, grads, counts: np.isnan(grads[1][0]).any(),
            ),
            Mistake(
                "The rank without targets was left out of R. DDP divides by all ranks, so R is "
                "`len(grads)`.",
                after={"grads": alike(lambda r, n, c: np.count_nonzero(c.sum(axis=1)) / n)},
            ),
            *MISTAKES,
        ),
    ),
    Check(
        "a window without targets is refused",
        args=lambda: ([[np.zeros(2)], [np.zeros(2)]], np.zeros((2, 3), int)),
        raises=ValueError,
        message="The mean over no target does not exist: raise ValueError where N is 0.",
        mistakes=(
            Mistake(
                "N is 0 here. Look at it before you divide, and raise ValueError.",
                raises=ZeroDivisionError,
            ),
            Mistake(
                "0 / 0 filled the gradients with NaN. Raise ValueError where N is 0.",
                when=lambda result, grads, counts: np.isnan(grads[0][0]).any(),
            ),
        ),
    ),
    Check(
        "float32 stays float32",
        args=lambda: worked(np.float32),
        after={"grads": right},
        rtol=1e-6,
        message="Write into the rank's own array: `g *= factor`.",
        mistakes=MISTAKES,
    ),
    NoElementLoop(
        "no Python loop over elements",
        args=lambda n: ([[np.ones(n)], [np.ones((n, 2))]], np.array([[3, 1], [2, 0]])),
        message="Let NumPy scale whole arrays; loops over ranks and lists are fine.",
    ),
]
