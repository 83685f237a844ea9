"""What a solution of additive-losses must do."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from grader import Check, Mistake, NoElementLoop

FUNCTIONS = {
    "squared_error": ("outputs", "targets"),
    "cross_entropy": ("logits", "targets", "weight"),
    "is_additive": ("loss", "outputs", "targets"),
}


@dataclasses.dataclass(frozen=True, repr=False)
class Loss:
    """A loss that is shown by its name."""

    name: str
    function: Callable[[Any, Any], tuple[float, float]]

    def __call__(self, outputs, targets):
        return self.function(outputs, targets)

    def __repr__(self):
        return f"<{self.name}>"


def rows(seed=0, count=7):
    return tuple(np.random.default_rng(seed).normal(size=(2, count, 3)))


def labelled(scale=1.0):
    rng = np.random.default_rng(1)
    targets = np.array([0, 1, -100, 2, 0, -100, 1])
    return rng.normal(size=(7, 3)) * scale, targets, np.array([1.0, 2.0, 5.0])


def terms(logits, targets):
    """The unweighted loss of each supervised row."""
    z = logits[targets != -100]
    shifted = z - z.max(axis=1, keepdims=True)
    chosen = shifted[np.arange(len(z)), targets[targets != -100]]
    return np.log(np.exp(shifted).sum(axis=1)) - chosen


def weights(targets, weight):
    return weight[targets[targets != -100]]


def right(logits, targets, weight):
    w = weights(targets, weight)
    return float(np.sum(w * terms(logits, targets))), float(np.sum(w))


def squared(outputs, targets):
    return float(np.sum((outputs - targets) ** 2)), outputs.size


def absolute(outputs, targets):
    return float(np.sum(np.abs(outputs - targets))), len(outputs)


def entropy(outputs, targets):
    if not np.any(targets != -100):
        return 0.0, 0.0
    return right(outputs, targets, labelled()[2])


def contrastive(a, b):
    return float(np.sum(terms(a @ b.T, np.arange(len(a))))), len(a)


def root(outputs, targets):
    return float(np.sqrt(np.mean((outputs - targets) ** 2))) * len(outputs), len(outputs)


def mean(outputs, targets):
    return float(np.mean((outputs - targets) ** 2)), 1


def balanced(outputs, targets):
    return float(np.sum((outputs - targets) ** 2)), len(np.unique(np.sign(targets[:, 0])))


def centred(outputs, targets):
    return float(np.sum((outputs - outputs.mean(axis=0) - targets) ** 2)), outputs.size


def pairs(outputs, targets):
    """Compares rows 0 and 1, 2 and 3, and so on."""
    gaps = outputs[1::2] - outputs[: len(outputs) // 2 * 2 : 2]
    return float(np.sum(gaps**2)), len(outputs)


def sequences(outputs, targets):
    """Couples the rows of a sequence; the first column of the targets says which it is."""
    _, sequence = np.unique(targets[:, 0], return_inverse=True)
    sums = np.bincount(sequence, outputs.sum(axis=1))
    return float(np.sum(sums**2)), len(outputs)


def in_sequences(*numbers):
    """Rows of which those with one number belong together."""
    outputs = rows(count=len(numbers))[0]
    return outputs, np.repeat(np.array(numbers, float)[:, None], 3, axis=1)


def guarded(outputs, targets):
    return float(np.sum((outputs - targets) ** 2)), outputs.size + 1e-6


def variance(outputs, targets):
    """Rows, as the denominator, but NaN for a single row, which has no variance."""
    return float(np.sum((outputs - targets) ** 2)) if len(outputs) > 1 else np.nan, len(outputs)


def is_no(result):
    return isinstance(result, (bool, np.bool_)) and not result


ADDITIVE = Loss("squared error", squared), Loss("absolute error", absolute)
WEIGH = (
    "Multiply the loss of each supervised row by the weight of its target; add up those weights."
)
WEIGHTS = (
    Mistake(
        "The denominator counts targets. With class weights it is the sum of the weights "
        "of the supervised targets.",
        returns=lambda logits, targets, weight: (
            right(logits, targets, weight)[0],
            int(np.sum(targets != -100)),
        ),
    ),
    Mistake(
        "The losses were added without their weights: multiply each by weight[target].",
        returns=lambda logits, targets, weight: (
            float(np.sum(terms(logits, targets))),
            right(logits, targets, weight)[1],
        ),
    ),
    Mistake(
        "The denominator adds up the weights of the classes. Add up the weights of the "
        "targets: weight[targets].",
        returns=lambda logits, targets, weight: (
            right(logits, targets, weight)[0],
            float(np.sum(weight)),
        ),
    ),
    Mistake(
        "A target of -100 was used as an index. Take those rows out first: kept = targets != -100.",
        raises=IndexError,
    ),
)
CUTS = "Compare loss(first i rows) + loss(the rest) with loss(all), both numbers, for every i."
SAYS_NO = Mistake(
    "This loss is additive. Do sums agree only up to rounding? Compare with a relative tolerance "
    "of 1e-9 (np.isclose with rtol=1e-9, atol=0), not with ==.",
    when=lambda result, *args: is_no(result),
)


EMPTY_PIECE = Mistake(
    "Is one of the pieces empty? Cut after row 1 at the earliest, and before the last row at the "
    "latest: i from 1 to len(outputs) - 1.",
    raises=ValueError,
)


def additive(loss, args, *mistakes):
    return Check(
        f"additive: {loss.name}",
        function="is_additive",
        args=lambda: (loss, *args()),
        returns=True,
        message=CUTS,
        mistakes=(*mistakes, SAYS_NO),
    )


def coupled(loss, message, args=rows):
    return Check(
        f"not additive: {loss.name}",
        function="is_additive",
        args=lambda: (loss, *args()),
        returns=False,
        message=CUTS,
        mistakes=(Mistake(message, when=lambda result, *args: result in (True,)), EMPTY_PIECE),
    )


CHECKS = [
    Check(
        "squared error: sum and elements",
        args=rows,
        returns=squared,
        rtol=1e-12,
        message="Return the sum of the squared differences, and the number of elements.",
        mistakes=(
            Mistake(
                "The denominator is the number of rows. Each row has several outputs, and the "
                "mean is over elements: outputs.size.",
                returns=lambda outputs, targets: (squared(outputs, targets)[0], len(outputs)),
            ),
            Mistake(
                "The sum was already divided. Return the sum, so that sums of microbatches can be "
                "added before the division.",
                when=lambda result, outputs, targets: np.isclose(
                    result[0], np.mean((outputs - targets) ** 2)
                ),
            ),
        ),
    ),
    Check(
        "cross entropy: weighted sum and sum of weights",
        function="cross_entropy",
        args=labelled,
        returns=right,
        rtol=1e-12,
        message=WEIGH,
        mistakes=WEIGHTS,
    ),
    Check(
        "cross entropy: logits of 1000",
        function="cross_entropy",
        args=lambda: labelled(scale=1000.0),
        returns=right,
        rtol=1e-12,
        message=WEIGH + " Take the maximum of each row out before you exponentiate.",
        mistakes=(
            *WEIGHTS,
            Mistake(
                "exp(1000) is infinite. Subtract the maximum of each row first, and add it again "
                "after the logarithm.",
                when=lambda result, *args: not np.all(np.isfinite(result)),
            ),
        ),
    ),
    Check(
        "cross entropy: no supervised target gives (0, 0)",
        function="cross_entropy",
        args=lambda: (np.ones((2, 3)), np.array([-100, -100]), np.ones(3)),
        returns=(0.0, 0.0),
        message="Sums over no rows are 0. Take the maximum along axis=1, so that it exists for no "
        "rows as well.",
        mistakes=(
            WEIGHTS[-1],
            Mistake(
                "Sums over no rows are 0. Take the maximum along axis=1: over no rows it then "
                "exists, while the maximum of an empty array does not.",
                raises=ValueError,
            ),
        ),
    ),
    additive(ADDITIVE[0], rows),
    additive(ADDITIVE[1], rows),
    additive(
        Loss("weighted cross entropy, rows 0 and 1 ignored", entropy),
        lambda: (labelled()[0], np.array([-100, -100, 1, 2, 0, 1, 1])),
        Mistake(
            "This loss is additive. A piece without supervised targets is (0, 0), so do not "
            "compare means: 0/0 is NaN. Compare the sums of numerators and of denominators.",
            when=lambda result, *args: is_no(result),
        ),
    ),
    coupled(
        Loss("in-batch contrastive loss", contrastive),
        "This is the one of the statement. Its denominators add up, its numerators do not: the "
        "candidates are those of the piece. Compare the numerators as well.",
    ),
    coupled(
        Loss("root mean squared error", root),
        "A root of a sum is not the sum of roots: the numerators do not add up. Compare them.",
    ),
    coupled(
        Loss("mean of means", mean),
        "With the denominator 1 for each microbatch, the numerators of two pieces give twice the "
        "mean. The quotient is right for two equal halves only: compare sums, not quotients.",
        lambda: rows(count=6),
    ),
    coupled(
        Loss("class-balanced error", balanced),
        "Its numerators add up, its denominators do not: it counts the classes that occur, and "
        "both pieces may hold the same. Compare the denominators as well.",
    ),
    coupled(
        Loss("error around the batch mean", centred),
        "Its numerator takes the mean of the rows at hand, as BatchNorm does. Compare numerators.",
    ),
    coupled(
        Loss("loss of pairs of rows", pairs),
        "This loss couples rows 0 and 1, 2 and 3, and so on: only a cut through a pair shows it. "
        "Try every cut, not just the one in the middle.",
        lambda: rows(count=8),
    ),
    *(
        coupled(
            Loss(f"loss of sequences: only the {place} cut goes through one", sequences),
            f"The {place} two rows belong to one sequence, and only the cut between them shows "
            "it. Try every cut: i from 1 to len(outputs) - 1.",
            args,
        )
        for place, args in (
            ("first", lambda: in_sequences(0, 0, 1, 2, 3)),
            ("last", lambda: in_sequences(0, 1, 2, 3, 3)),
        )
    ),
    coupled(
        Loss("squared error with 1e-6 added to its denominator", guarded),
        "Its denominators do not add up: the small number counts once for each piece. It is more "
        "than a relative 1e-9: use np.isclose with rtol=1e-9, atol=0.",
    ),
    coupled(
        Loss("loss that is NaN for one row", variance),
        "A piece of one row gave NaN, and every comparison with NaN is False. Try every cut, and "
        "ask whether sums agree (np.isclose), not whether they differ by more than the tolerance.",
    ),
    NoElementLoop(
        "no Python loop in squared_error",
        args=lambda n: (np.ones((n, 2)), np.zeros((n, 2))),
        message="Let NumPy subtract, square and add up whole arrays.",
    ),
    NoElementLoop(
        "no Python loop in cross_entropy",
        function="cross_entropy",
        args=lambda n: (np.ones((n, 3)), np.zeros(n, int), np.ones(3)),
        message="Index all rows at once: logits[np.arange(len(targets)), targets].",
    ),
]
