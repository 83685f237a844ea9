"""What a solution of undo-mean-of-means must do."""

import numpy as np
from grader import Check, Mistake, NoElementLoop

FUNCTIONS = {"window_means": ("means", "counts"), "run_mean": ("means", "counts")}


def example():
    return np.array([[10.0, 1.0], [4.0, np.nan]]), np.array([[1, 4], [3, 0]])


def losses(dtype=np.float64):
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 600, (6, 4))
    return (rng.random((6, 4)) * 3 + 1).astype(dtype), counts


def gradients(*shape):
    """Logged gradients; the last window has a tail of two microbatches."""
    rng = np.random.default_rng(1)
    means, counts = rng.normal(size=(3, 4, *shape)), rng.integers(1, 99, (3, 4))
    means[2, 2:], counts[2, 2:] = np.nan, 0
    return means, counts


def empty_window():
    return np.array([[2.0, 3.0], [np.nan, np.nan]]), np.array([[1, 1], [0, 0]])


def real_nan():
    return np.array([[2.0, np.nan], [1.0, np.nan]]), np.array([[4, 0], [4, 3]])


def widened(counts, means):
    return counts.reshape(counts.shape + (1,) * (means.ndim - 2))


def right(means, counts):
    n = widened(counts, means)
    sums = np.sum(np.where(n > 0, means, 0).astype(np.float64) * n, axis=1)
    return sums / np.sum(n, axis=1)


def right_of_run(means, counts):
    return right(means.reshape(1, -1, *means.shape[2:]), counts.reshape(1, -1))[0]


def mean_of_means(means, counts):
    logged = widened(counts, means) > 0
    return np.where(logged, means, 0).sum(axis=1) / logged.sum(axis=1)


def over_k(means, counts):
    return np.where(widened(counts, means) > 0, means, 0).mean(axis=1)


def over_average_window(means, counts):
    return right(means, counts) * widened(counts, means).sum(axis=1) * len(counts) / counts.sum()


def sums(means, counts):
    return right(means, counts) * widened(counts, means).sum(axis=1)


def mean_of_windows(means, counts):
    found = right(means, counts)
    return found[~np.isnan(found)].mean()


def is_nan(result, *args):
    return np.isnan(result).any()


WEIGH = "Multiply each mean by its count, add up over axis 1, divide by the sum of the counts."
MEANS = (
    Mistake(
        "This is still the mean of means: microbatches weigh equally, whatever their counts. "
        "Multiply each mean by its count before you add up.",
        returns=mean_of_means,
    ),
    Mistake(
        "This is the mean of means, with the filling counted as microbatches of mean 0. Multiply "
        "each mean by its count, and divide by the sum of the counts.",
        returns=over_k,
    ),
    Mistake("These are sums. Divide by the sum of the counts of the window.", returns=sums),
    Mistake(
        "The sums are right, but they were divided by the targets of an average window. Divide "
        "each by the count of its own window.",
        returns=over_average_window,
    ),
)
NAN_TIMES_ZERO = Mistake(
    "0 times NaN is NaN. Replace the mean where the count is 0, before you multiply: "
    "np.where(counts > 0, means, 0).",
    when=is_nan,
)
SHAPES = Mistake(
    "Counts of shape (windows, k) do not broadcast over the further axes of the means. Give them "
    "as many axes: counts.reshape(counts.shape + (1,) * (means.ndim - 2)).",
    raises=ValueError,
)

CHECKS = [
    Check(
        "losses of the worked example",
        args=example,
        returns=np.array([2.8, 4.0]),
        rtol=1e-12,
        message=WEIGH,
        mistakes=(*MEANS, NAN_TIMES_ZERO),
    ),
    Check(
        "losses of six windows",
        args=losses,
        returns=right,
        result_dtype=np.float64,
        rtol=1e-12,
        message=WEIGH,
        mistakes=MEANS,
    ),
    Check(
        "gradients: one further axis",
        args=lambda: gradients(4),
        returns=right,
        rtol=1e-12,
        message=WEIGH + " The counts broadcast over all further axes.",
        mistakes=(*MEANS, NAN_TIMES_ZERO, SHAPES),
    ),
    Check(
        "gradients: two further axes",
        args=lambda: gradients(2, 3),
        returns=right,
        rtol=1e-12,
        message=WEIGH + " The counts broadcast over all further axes.",
        mistakes=(*MEANS, NAN_TIMES_ZERO, SHAPES),
    ),
    Check(
        "a window without targets has the mean NaN",
        args=empty_window,
        returns=np.array([2.5, np.nan]),
        rtol=1e-12,
        message="Where the counts of a window add up to 0, the result is NaN.",
        mistakes=(
            Mistake(
                "A window without targets came out as 0: a perfect loss, which it never had. It "
                "has no mean: NaN.",
                when=lambda result, *args: result[1] == 0,
            ),
        ),
    ),
    Check(
        "a NaN with targets is shown",
        args=real_nan,
        returns=np.array([2.0, np.nan]),
        rtol=1e-12,
        message="A mean of NaN over three targets is a fault of the run, and it must stay visible. "
        "Replace a mean only where its count is 0.",
        mistakes=(
            Mistake(
                "A real NaN was hidden: the count there is 3. Replace a mean where its count is 0, "
                "not where it is NaN: no nansum, no nan_to_num.",
                when=lambda result, *args: not is_nan(result),
            ),
            Mistake(
                "0 times NaN is NaN: the first window has a NaN with count 0, which adds nothing. "
                "Replace the mean where the count is 0, before you multiply.",
                when=lambda result, *args: is_nan(result[0]),
            ),
        ),
    ),
    Check(
        "a float32 log is averaged in float64",
        args=lambda: losses(np.float32),
        returns=right,
        result_dtype=np.float64,
        rtol=1e-12,
        message="Add up in float64: np.sum(..., dtype=np.float64).",
        mistakes=MEANS,
    ),
    Check(
        "the mean over the run of the worked example",
        function="run_mean",
        args=example,
        returns=3.25,
        rtol=1e-12,
        message="Divide the sum over all microbatches by the count of all.",
        mistakes=(
            Mistake(
                "This is the mean of the windows' means. Windows hold unequal numbers of targets: "
                "divide the sum over all microbatches by the count of all.",
                returns=mean_of_windows,
            ),
            Mistake(
                "This is the mean of all logged means. Weigh each by its count.",
                returns=5.0,
            ),
            NAN_TIMES_ZERO,
        ),
    ),
    Check(
        "the mean gradient over the run",
        function="run_mean",
        args=lambda: gradients(2, 3),
        returns=right_of_run,
        rtol=1e-12,
        message="Add up over windows and microbatches, and keep the further axes.",
        mistakes=(
            Mistake(
                "This is the mean of the windows' means. Windows hold unequal numbers of targets: "
                "divide the sum over all microbatches by the count of all.",
                returns=lambda means, counts: right(means, counts).mean(axis=0),
            ),
            NAN_TIMES_ZERO,
            SHAPES,
        ),
    ),
    Check(
        "a window without targets adds nothing to the run",
        function="run_mean",
        args=empty_window,
        returns=2.5,
        rtol=1e-12,
        message="Divide the sum over all microbatches by the count of all.",
        mistakes=(
            Mistake(
                "The empty window has the mean NaN, and 0 times NaN is NaN. Do not go by the "
                "windows' means: divide the sum over all microbatches by the count of all.",
                when=is_nan,
            ),
        ),
    ),
    Check(
        "the run shows a NaN with targets",
        function="run_mean",
        args=real_nan,
        returns=np.nan,
        message="One of the logged NaNs has the count 3, so the run has no mean to trust. Replace "
        "a mean where its count is 0, not where it is NaN: no nansum, no nan_to_num.",
    ),
    Check(
        "the run of a float32 log is averaged in float64",
        function="run_mean",
        args=lambda: losses(np.float32),
        returns=right_of_run,
        rtol=1e-12,
        message="Add up in float64: np.sum(..., dtype=np.float64).",
    ),
    *(
        NoElementLoop(
            f"{name}: no Python loop over windows or microbatches",
            function=name,
            args=lambda n: (np.ones((n, 2, 3)), np.ones((n, 2), int)),
            message="Let NumPy work on whole arrays: multiply by the counts, and sum over axes.",
        )
        for name in FUNCTIONS
    ),
]
