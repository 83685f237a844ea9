"""What a solution of best-segment must do."""

import math

import numpy as np
from grader import Check, Mistake, NoElementLoop

FUNCTIONS = {
    "segment_peaks": ("layer_count", "kept", "segments"),
    "best_segment": ("layer_count", "kept"),
}


def peaks(layer_count, kept, segments):
    return np.array([math.ceil(layer_count / k) + kept * k for k in segments.flat]).reshape(
        segments.shape
    )


def least(layer_count, kept):
    """All k with the least peak."""
    sizes = np.arange(1, layer_count + 1)
    found = peaks(layer_count, kept, sizes)
    return [int(k) for k in sizes[found == found.min()]]


def up_to(layer_count):
    return np.arange(1, layer_count + 1)


PEAK_MISTAKES = (
    Mistake(
        "A last, shorter segment was forgotten: it has an input too. Round L / k up, not down.",
        returns=lambda layers, kept, k: layers // k + kept * k,
    ),
    Mistake(
        "The number of segments is a whole number: round L / k up.",
        returns=lambda layers, kept, k: layers / k + kept * k,
    ),
    Mistake(
        "A layer keeps `kept` activations, not one: the k layers of a segment keep kept * k.",
        returns=lambda layers, kept, k: -(-layers // k) + k,
    ),
    Mistake(
        "The inputs were multiplied by `kept` as well. A segment has one input; only what the "
        "layers of one segment keep counts kept times.",
        returns=lambda layers, kept, k: kept * (-(-layers // k) + k),
    ),
    Mistake(
        "This has the inputs of one segment too few: all inputs are alive, also the last one.",
        returns=lambda layers, kept, k: -(-layers // k) - 1 + kept * k,
    ),
    Mistake(
        "Where k divides L, this counts one segment too many: L // k + 1 is not L / k rounded up.",
        returns=lambda layers, kept, k: layers // k + 1 + kept * k,
    ),
    Mistake(
        "These are k segments, not segments of k layers: there are L / k segments, and one of "
        "them keeps kept * k.",
        returns=lambda layers, kept, k: k + kept * -(-layers // k),
    ),
)
INTEGERS = {
    "the entries are whole numbers": lambda result, *args: result.dtype.kind in "iu",
}
SEARCH = (
    "Compute the peak of every k from 1 to layer_count and take the first least one. If a test of "
    "segment_peaks fails, mend that first."
)


def rule(message, size):
    """The mistake of a formula for the best segment, a function of L / c and L."""
    return Mistake(
        message,
        when=lambda result, layers, kept: result == size(layers / kept, layers),
    )


BEST_MISTAKES = (
    Mistake(
        "This is the least peak itself. Return the k that has it.",
        returns=lambda layers, kept: int(peaks(layers, kept, up_to(layers)).min()),
    ),
    Mistake(
        "This is the index of the best segment. Index 0 is the segment of one layer: add 1.",
        returns=lambda layers, kept: least(layers, kept)[0] - 1,
    ),
    Mistake(
        "Another k has the same peak, and is smaller. Take the smallest of them: "
        "`np.argmin` gives the first.",
        when=lambda result, layers, kept: result in least(layers, kept)[1:],
    ),
    rule(
        "This is the square root of L / c, rounded. The rule can miss the least: the number of "
        "segments is rounded too. Compute all peaks, and look.",
        lambda ratio, layers: max(1, round(math.sqrt(ratio))),
    ),
    rule(
        "This is the square root of L. A layer keeps `kept` activations here, so the best "
        "segments are shorter. Compute all peaks, and look.",
        lambda ratio, layers: round(math.sqrt(layers)),
    ),
    Mistake(
        "Only divisors of L were tried. A last segment may be shorter: try every k.",
        returns=lambda layers, kept: min(
            (k for k in range(1, layers + 1) if layers % k == 0),
            key=lambda k: layers // k + kept * k,
        ),
    ),
)

CHECKS = [
    Check(
        "the peaks of a chain that divides evenly",
        args=lambda: (64, 1, np.array([1, 2, 4, 8, 16, 32, 64])),
        returns=np.array([65, 34, 20, 16, 20, 34, 65]),
        message="m(k) is L / k rounded up, plus kept * k.",
        mistakes=PEAK_MISTAKES,
    ),
    Check(
        "a last segment that is shorter",
        args=lambda: (10, 1, up_to(10)),
        returns=peaks,
        message="m(k) is L / k rounded up, plus kept * k.",
        mistakes=PEAK_MISTAKES,
    ),
    Check(
        "layers that keep more than one activation",
        args=lambda: (20, 9, up_to(20)),
        returns=peaks,
        message="m(k) is L / k rounded up, plus kept * k.",
        mistakes=PEAK_MISTAKES,
    ),
    Check(
        "any shape and order of segments",
        args=lambda: (12, 2, np.array([[12, 1], [5, 3]])),
        returns=peaks,
        message="One peak for each entry, where that entry stands.",
    ),
    Check(
        "peaks are whole numbers",
        args=lambda: (12, 2, up_to(12)),
        holds=INTEGERS,
        message="Stay with integers: `-(-layer_count // segments)` rounds up.",
    ),
    Check(
        "the best segment of 64 layers",
        function="best_segment",
        args=lambda: (64, 1),
        returns=8,
        message=SEARCH,
        mistakes=BEST_MISTAKES,
    ),
    Check(
        "of several best ones the smallest",
        function="best_segment",
        args=lambda: (10, 1),
        returns=2,
        message=SEARCH,
        mistakes=BEST_MISTAKES,
    ),
    Check(
        "layers that keep nine: not the rounded root",
        function="best_segment",
        args=lambda: (20, 9),
        returns=2,
        message=SEARCH,
        mistakes=(
            Mistake(
                "One layer is what the rule says, the square root of 20/9, rounded: its peak is "
                "29, that of two layers 28. (Or an index was taken for a size.) Compute all "
                "peaks, and look.",
                returns=1,
            ),
            *BEST_MISTAKES,
        ),
    ),
    Check(
        "a prime number of layers",
        function="best_segment",
        args=lambda: (61, 4),
        returns=lambda layers, kept: least(layers, kept)[0],
        message=SEARCH,
        mistakes=BEST_MISTAKES,
    ),
    Check(
        "layers that keep much: one each",
        function="best_segment",
        args=lambda: (6, 40),
        returns=1,
        message=SEARCH,
        mistakes=(
            Mistake("A segment has at least one layer.", returns=0),
            *BEST_MISTAKES,
        ),
    ),
    Check(
        "one layer",
        function="best_segment",
        args=lambda: (1, 3),
        returns=1,
        message="The only segment there is has one layer.",
        mistakes=(
            Mistake(
                "Is layer_count itself tried? k goes from 1 to L, both included.", raises=ValueError
            ),
        ),
    ),
    Check(
        "the best segment is an int",
        function="best_segment",
        args=lambda: (30, 2),
        result_type=int,
        message="Convert it with int(...).",
    ),
    NoElementLoop(
        "no Python loop over segments",
        args=lambda n: (n, 2, np.arange(1, n + 1)),
        message="NumPy divides a number by a whole array: `layer_count // segments`.",
    ),
]
