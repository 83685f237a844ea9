"""What a solution of masked-denominators must do."""

import numpy as np
from grader import Check, Mistake, NoElementLoop

FUNCTIONS = {
    "shares": ("targets", "ignore_index"),
    "window_mean": ("losses", "targets", "ignore_index"),
}


def targets():
    return [np.array([7, -100, -100]), np.array([2, 0, 5, 1, -100])]


def losses(ignored=0.3):
    return [np.array([10.0, ignored, ignored]), np.array([1.0, 1.0, 1.0, 1.0, ignored])]


def with_masked():
    return [*targets(), np.full(4, -100)], [*losses(), np.full(4, 0.3)]


def table():
    """Three microbatches of rows and positions; here 0 is the padding."""
    rng = np.random.default_rng(0)
    shapes = ((2, 5), (3, 5), (1, 2, 3))
    return [rng.integers(0, 3, shape) for shape in shapes], [rng.random(s) + 1 for s in shapes]


def counts(targets, ignore_index):
    return np.array([int(np.sum(t != ignore_index)) for t in targets], np.float64)


def right_shares(targets, ignore_index):
    return counts(targets, ignore_index) / counts(targets, ignore_index).sum()


def right_mean(losses, targets, ignore_index):
    pairs = zip(losses, targets, strict=True)
    total = sum(float(np.sum(loss[t != ignore_index])) for loss, t in pairs)
    return total / counts(targets, ignore_index).sum()


def mean_of_means(losses, targets, ignore_index):
    masked = (loss[t != ignore_index] for loss, t in zip(losses, targets, strict=True))
    return np.mean([np.mean(loss) for loss in masked if loss.size])


def over_positions(losses, targets, ignore_index):
    total = right_mean(losses, targets, ignore_index) * counts(targets, ignore_index).sum()
    return total / sum(t.size for t in targets)


def is_nan(result, *args):
    return np.isnan(result).any()


SHARE = "Count the targets other than ignore_index in each microbatch; divide by their total."
SELECT = "Add up losses[targets != ignore_index] over all microbatches, and divide once."
POSITIONS = Mistake(
    "Every position was counted, the ignored ones too. Count where targets != ignore_index.",
    returns=lambda targets, ignore_index: (
        np.array([t.size for t in targets]) / sum(t.size for t in targets)
    ),
)
PADDING_IS_ZERO = Mistake(
    "Target 0 was counted as ignored. It is a class like any other here: compare with "
    "ignore_index, and with nothing else.",
    returns=lambda targets, ignore_index: (
        counts([np.maximum(t, 0) for t in targets], 0)
        / counts([np.maximum(t, 0) for t in targets], 0).sum()
    ),
)
MEANS = Mistake(
    "This is the mean of the microbatches' means: a target in a microbatch of few weighs more "
    "than one in a microbatch of many. Divide the sum over all by the count of all.",
    returns=mean_of_means,
)
ONE_MASKED = Mistake(
    "One microbatch without supervised targets is allowed: its share is 0. Refuse the window only "
    "if all its counts are 0.",
    raises=ValueError,
)
ANY_INDEX = Mistake(
    "Segmentation often ignores 255, which is larger than every class. Compare with "
    "`targets != ignore_index`, not with > or >=.",
    raises=ValueError,
)
REFUSE = (
    Mistake(
        "The window has no supervised target, and you returned 0: that would be a perfect "
        "loss. Raise ValueError if the count is 0.",
        when=lambda result, *args: np.ndim(result) == 0 and result == 0,
    ),
    Mistake(
        "The window has no supervised target, and 0/0 gave NaN, which an optimizer step would "
        "spread. Raise ValueError if the count is 0, before you divide.",
        when=is_nan,
    ),
    Mistake(
        "Raise ValueError if the count is 0, before you divide.",
        raises=ZeroDivisionError,
    ),
)

CHECKS = [
    Check(
        "shares of one target and of four",
        args=lambda: (targets(), -100),
        returns=np.array([0.2, 0.8]),
        result_dtype=np.float64,
        rtol=1e-12,
        message=SHARE,
        mistakes=(
            Mistake(
                "Every microbatch got the same share. The share is its count of supervised "
                "targets over that of the window.",
                returns=np.array([0.5, 0.5]),
            ),
            Mistake(
                "These are counts. Divide them by their total.",
                returns=np.array([1.0, 4.0]),
            ),
            POSITIONS,
            PADDING_IS_ZERO,
        ),
    ),
    Check(
        "a masked microbatch has share 0",
        args=lambda: (with_masked()[0], -100),
        returns=np.array([0.2, 0.8, 0.0]),
        rtol=1e-12,
        message=SHARE,
        mistakes=(POSITIONS, PADDING_IS_ZERO, ONE_MASKED),
    ),
    Check(
        "shares: another ignore_index, and more dimensions",
        args=lambda: (table()[0], 0),
        returns=right_shares,
        rtol=1e-12,
        message=SHARE,
        mistakes=(
            Mistake(
                "Here ignore_index is 0, and targets of 0 were counted. Compare the targets with "
                "the argument, not with -100.",
                when=lambda result, targets, ignore_index: np.allclose(
                    result, right_shares(targets, -100)
                ),
            ),
            POSITIONS,
        ),
    ),
    Check(
        "shares: an ignore_index above all classes",
        args=lambda: ([np.array([3, 255, 255]), np.array([0, 1, 2, 255])], 255),
        returns=np.array([0.25, 0.75]),
        rtol=1e-12,
        message=SHARE,
        mistakes=(ANY_INDEX,),
    ),
    Check(
        "shares of a window without supervised targets",
        args=lambda: ([np.full(3, -100), np.full((2, 2), -100)], -100),
        raises=ValueError,
        message="Raise ValueError if the total count is 0, before you divide.",
        mistakes=REFUSE,
    ),
    Check(
        "the mean over all supervised targets",
        function="window_mean",
        args=lambda: (losses(), targets(), -100),
        returns=2.8,
        rtol=1e-12,
        message=SELECT,
        mistakes=(
            MEANS,
            Mistake(
                "The sum is right, but it was divided by all positions. Divide by the number of "
                "supervised targets.",
                returns=over_positions,
            ),
            Mistake(
                "The losses of ignored positions are in this mean. Select the supervised ones: "
                "losses[targets != ignore_index].",
                returns=lambda losses, *rest: np.mean(np.concatenate(losses)),
            ),
            Mistake(
                "Target 0 was left out. It is a class like any other: compare with ignore_index.",
                returns=13 / 4,
            ),
            Mistake(
                "This is the sum. Divide it by the number of supervised targets.", returns=14.0
            ),
        ),
    ),
    Check(
        "the mean is a Python float",
        function="window_mean",
        args=lambda: (losses(), targets(), -100),
        result_type=float,
        message="Convert it with float(...).",
    ),
    Check(
        "a masked microbatch adds nothing to the mean",
        function="window_mean",
        args=lambda: (with_masked()[1], with_masked()[0], -100),
        returns=2.8,
        rtol=1e-12,
        message=SELECT,
        mistakes=(
            Mistake(
                "The mean of no losses is 0/0 = NaN. Do not take a mean for each microbatch: add "
                "up sums and counts, and divide once.",
                when=is_nan,
            ),
            Mistake(
                "The microbatch without supervised targets counted as one of the window. Divide "
                "the sum over all by the count of all.",
                returns=11 / 3,
            ),
            MEANS,
            ONE_MASKED,
        ),
    ),
    Check(
        "NaN at ignored positions is not read",
        function="window_mean",
        args=lambda: (losses(ignored=np.nan), targets(), -100),
        returns=2.8,
        rtol=1e-12,
        message=SELECT,
        mistakes=(
            Mistake(
                "0 times NaN is NaN: multiplying by a mask does not remove a value. Select with "
                "losses[mask], or np.where(mask, losses, 0).",
                when=is_nan,
            ),
        ),
    ),
    Check(
        "NaN at a supervised target is shown",
        function="window_mean",
        args=lambda: ([np.array([np.nan, 1.0])], [np.array([3, 4])], -100),
        returns=np.nan,
        message="A supervised loss of NaN is a fault of the run. Leave out ignored positions by "
        "their target, not by their loss: no nansum, nanmean or nan_to_num.",
    ),
    Check(
        "the mean: another ignore_index, and more dimensions",
        function="window_mean",
        args=lambda: (table()[1], table()[0], 0),
        returns=right_mean,
        rtol=1e-12,
        message=SELECT,
        mistakes=(
            MEANS,
            Mistake(
                "Here ignore_index is 0, and losses of targets 0 are in this mean. Compare the "
                "targets with the argument, not with -100.",
                returns=lambda losses, targets, ignore_index: right_mean(losses, targets, -100),
            ),
        ),
    ),
    Check(
        "the mean: an ignore_index above all classes, and a loss of 0",
        function="window_mean",
        args=lambda: (
            [np.array([10.0, 0.3]), np.array([0.0, 2.0])],
            [np.array([3, 255]), np.array([0, 1])],
            255,
        ),
        returns=4.0,
        rtol=1e-12,
        message=SELECT,
        mistakes=(
            ANY_INDEX,
            Mistake(
                "A supervised target with loss 0 was not counted. Count targets, not losses.",
                returns=6.0,
            ),
        ),
    ),
    Check(
        "the mean of a window without supervised targets",
        function="window_mean",
        args=lambda: ([np.ones(3), np.ones(2)], [np.full(3, -100), np.full(2, -100)], -100),
        raises=ValueError,
        message="Raise ValueError if the total count is 0, before you divide.",
        mistakes=REFUSE,
    ),
    NoElementLoop(
        "no Python loop over elements",
        function="window_mean",
        args=lambda n: ([np.ones(n), np.ones((n, 2))], [np.ones(n, int), np.ones((n, 2), int)], 0),
        message="Let NumPy compare, count and add up whole arrays.",
    ),
]
