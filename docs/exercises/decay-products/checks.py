"""What a solution of decay-products must do."""

import math

import numpy as np
from grader import Check, Mistake, NoElementLoop

FUNCTIONS = {
    "decay_factor": ("rates", "decay"),
    "matching_decay": ("rates", "decay", "new_rates"),
}
HUNDRED, FIFTY = np.full(100, 0.01), np.full(50, 0.01)


def cosine(updates=200, peak=0.05):
    return peak * (1 + np.cos(np.pi * np.arange(updates) / updates)) / 2


def warm_up(updates=50, peak=0.1):
    return peak * np.minimum(1, np.arange(updates) / 10)


def factor(rates, decay):
    return math.exp(float(np.sum(np.log1p(-rates * decay))))


def matching(rates, decay, new_rates):
    """The root, by Newton's method from the side on which it cannot leave the range."""
    wanted, found = float(np.sum(np.log1p(-rates * decay))), 0.0
    for _ in range(40):
        slope = float(np.sum(new_rates / (1 - new_rates * found)))
        found = min(
            found + (np.sum(np.log1p(-new_rates * found)) - wanted) / slope,
            (found + 1 / new_rates.max()) / 2,
        )
    return float(found)


def first_order(rates, decay, new_rates):
    return decay * rates.sum() / new_rates.sum()


EXPONENTIAL = Mistake(
    "This is exp(-decay * sum of the rates), which is only near. Multiply the factors "
    "1 - rate * decay themselves.",
    returns=lambda rates, decay: math.exp(-decay * rates.sum()),
)
FACTOR_MISTAKES = (
    EXPONENTIAL,
    Mistake(
        "The terms were added up: 1 - decay * sum. But each update shrinks what the one before "
        "it left: multiply the factors.",
        returns=lambda rates, decay: 1 - decay * rates.sum(),
    ),
    Mistake(
        "The learning rate is missing: AdamW multiplies by 1 - rate * decay, not by 1 - decay.",
        returns=lambda rates, decay: (1 - decay) ** len(rates),
    ),
    Mistake(
        "Every update was taken at the mean rate. The factors differ: multiply "
        "1 - rate * decay over the real rates.",
        returns=lambda rates, decay: (1 - rates.mean() * decay) ** len(rates),
    ),
    Mistake(
        "Every update was taken at one rate, the first or the last. Use the rate of each.",
        when=lambda result, rates, decay: any(
            np.isclose(result, (1 - rates[i] * decay) ** len(rates), rtol=1e-9) for i in (0, -1)
        ),
    ),
    Mistake(
        "This is what decay takes off. Return what it leaves: the product itself.",
        returns=lambda rates, decay: 1 - factor(rates, decay),
    ),
)
FIRST_ORDER = Mistake(
    "This is decay * sum(rates) / sum(new_rates), the first order only. Take it as a guess, and "
    "look for the decay whose product is the wanted one.",
    returns=first_order,
)
ROOT = (
    "Look for the decay at which decay_factor(new_rates, ...) is decay_factor(rates, decay). If a "
    "test of decay_factor fails, mend that first."
)
MATCHING_MISTAKES = (
    FIRST_ORDER,
    Mistake(
        "This goes the wrong way round: fewer updates, or smaller rates, need *more* decay.",
        returns=lambda rates, decay, new: decay * new.sum() / rates.sum(),
    ),
    Mistake(
        "This goes the wrong way round: it shrinks the decay with the number of updates. Fewer "
        "updates need *more* decay.",
        returns=lambda rates, decay, new: decay * len(new) / len(rates),
    ),
    Mistake(
        "Only the numbers of updates were compared. The rates count as well.",
        returns=lambda rates, decay, new: decay * len(rates) / len(new),
    ),
    Mistake(
        "NaN: the search went to a decay at which rate * decay is above 1, and the log of a "
        "negative number does not exist. Keep the decay between 0 and 1 / new_rates.max().",
        when=lambda result, *args: np.isnan(result),
    ),
    Mistake(
        "With this decay an update would turn the sign of the weight: rate * decay is above 1. "
        "Keep the decay between 0 and 1 / new_rates.max().",
        when=lambda result, rates, decay, new: result * new.max() > 1,
    ),
    Mistake(
        "The search ended at 1, but a decay can be larger: look between 0 and 1 / new_rates.max().",
        when=lambda result, *args: np.isclose(result, 1) and not np.isclose(matching(*args), 1),
    ),
    Mistake(
        "The search ran to the end of its interval: it kept the wrong half. The factor falls as "
        "the decay grows, so where it is above the wanted one, look higher.",
        when=lambda result, rates, decay, new: (
            np.isclose(result * new.max(), 1, rtol=1e-6, atol=0) or abs(result) < 1e-12
        ),
    ),
    Mistake(
        "The search stopped too early, or decay_factor is not exact: this is within 1e-3 of the "
        "right decay, but not within 1e-6.",
        when=lambda result, *args: math.isclose(result, matching(*args), rel_tol=1e-3),
    ),
)

CHECKS = [
    Check(
        "the factor of a hundred equal updates",
        args=lambda: (HUNDRED.copy(), 0.1),
        returns=lambda rates, decay: 0.999**100,
        rtol=1e-9,
        message="Multiply 1 - rate * decay over all updates.",
        mistakes=FACTOR_MISTAKES,
    ),
    Check(
        "the factor of a schedule",
        args=lambda: (cosine(), 0.3),
        returns=factor,
        rtol=1e-9,
        message="Multiply 1 - rate * decay over all updates, each with its own rate.",
        mistakes=FACTOR_MISTAKES,
    ),
    Check(
        "large terms",
        args=lambda: (np.array([0.5, 2.0, 0.0, 0.8]), 0.4),
        returns=0.8 * 0.2 * 1.0 * 0.68,
        rtol=1e-9,
        message="Multiply 1 - rate * decay over all updates.",
        mistakes=FACTOR_MISTAKES,
    ),
    Check(
        "no update leaves 1",
        args=lambda: (np.zeros(0), 0.1),
        returns=1.0,
        message="A product of nothing is 1, a sum of nothing 0. No mean exists, and no first rate.",
    ),
    Check(
        "returns a Python float",
        args=lambda: (HUNDRED.copy(), 0.1),
        result_type=float,
        message="Convert the product with float(...).",
    ),
    Check(
        "half as many updates",
        function="matching_decay",
        args=lambda: (HUNDRED.copy(), 0.1, FIFTY.copy()),
        returns=matching,
        rtol=1e-6,
        message=ROOT,
        mistakes=MATCHING_MISTAKES,
    ),
    Check(
        "twice the rate, as many updates",
        function="matching_decay",
        args=lambda: (HUNDRED.copy(), 0.1, 2 * HUNDRED),
        returns=0.05,
        rtol=1e-6,
        message=ROOT,
        mistakes=(
            Mistake(
                "This goes the wrong way round: larger rates need *less* decay.",
                returns=0.2,
            ),
            Mistake(
                "Only the numbers of updates were compared. The rates count as well: twice the "
                "rate takes half the decay.",
                returns=0.1,
            ),
            *MATCHING_MISTAKES,
        ),
    ),
    Check(
        "another schedule: cosine to warm-up",
        function="matching_decay",
        args=lambda: (cosine(), 0.3, warm_up()),
        returns=matching,
        rtol=1e-6,
        message=ROOT,
        mistakes=MATCHING_MISTAKES,
    ),
    Check(
        "few large updates, where the first order goes too far",
        function="matching_decay",
        args=lambda: (np.full(100, 0.1), 0.3, np.full(2, 1.0)),
        returns=matching,
        rtol=1e-6,
        message=ROOT,
        mistakes=MATCHING_MISTAKES,
    ),
    Check(
        "two small updates, which take a decay above 1",
        function="matching_decay",
        args=lambda: (HUNDRED.copy(), 0.1, np.full(2, 0.04)),
        returns=matching,
        rtol=1e-6,
        message=ROOT,
        mistakes=MATCHING_MISTAKES,
    ),
    Check(
        "without decay the matching one is 0",
        function="matching_decay",
        args=lambda: (HUNDRED.copy(), 0.0, FIFTY.copy()),
        returns=0.0,
        atol=1e-9,
        message="The factor to match is 1, and only decay 0 leaves it.",
    ),
    NoElementLoop(
        "decay_factor: no Python loop over updates",
        args=lambda n: (np.full(n, 1 / n), 0.1),
        message="Let NumPy multiply: `np.prod(1 - rates * decay)`.",
    ),
    NoElementLoop(
        "matching_decay: no Python loop over updates",
        function="matching_decay",
        args=lambda n: (np.full(2 * n, 0.5 / n), 0.1, np.full(n, 1 / n)),
        message="Let NumPy multiply over all updates; only the search for the decay may loop.",
    ),
]
