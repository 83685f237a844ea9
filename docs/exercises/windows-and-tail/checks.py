"""What a solution of windows-and-tail must do."""

import numpy as np
from grader import Check, Mistake

FUNCTIONS = {"accumulate": ("stream", "accumulation_steps", "update")}
SIZES = (3, 2, 4, 1, 2)


class Stream:
    """An iterator over microbatches that writes down what is taken from it."""

    def __init__(self, microbatches, events=None):
        self.microbatches, self.taken = microbatches, 0
        self.events = [] if events is None else events

    def __iter__(self):
        return self

    def __next__(self):
        if self.taken == len(self.microbatches):
            raise StopIteration
        self.taken += 1
        self.events.append("take")
        return self.microbatches[self.taken - 1]

    def __repr__(self):
        return f"<iterator over {len(self.microbatches)} microbatches>"


class Update:
    """The function that gets the gradients; it keeps a copy of each."""

    def __init__(self, events=None):
        self.gradients = []
        self.events = [] if events is None else events

    def __call__(self, gradient):
        self.gradients.append(np.array(gradient, np.float64))
        self.events.append("update")

    def __repr__(self):
        return "update"


class Sealed(Stream):
    """A stream that nothing may be taken from."""

    def __next__(self):
        raise AssertionError("a microbatch was taken")


def data(sizes=SIZES):
    rng = np.random.default_rng(0)
    return [(rng.normal(size=(2,)) * n, n) for n in sizes]


def cut(items, length):
    return [items[i : i + length] for i in range(0, len(items), length)]


def gradients(sizes, length):
    """What the learner's function hands to `update`."""

    def run(accumulate):
        update = Update()
        accumulate(Stream(data(sizes)), length, update)
        return update.gradients

    return run


def events(sizes, length):
    def run(accumulate):
        seen = []
        accumulate(Stream(data(sizes), seen), length, Update(seen))
        return seen

    return run


def returned(accumulate):
    runs = ((SIZES, 3), (SIZES[:4], 2), (SIZES[:2], 3), (SIZES, 1), ((), 3))
    return [accumulate(Stream(data(sizes)), length, Update()) for sizes, length in runs]


def stream_afterwards(accumulate):
    microbatches = data()
    accumulate(Stream(microbatches), 3, Update())
    return microbatches


def own_mean(window):
    return sum(g for g, n in window) / sum(n for g, n in window)


def each(mean, sizes=SIZES, length=3):
    return [mean(window) for window in cut(data(sizes), length)]


def leaking():
    first, second = cut(data(), 3)
    return [own_mean(first), sum(g for g, n in first + second) / sum(n for g, n in second)]


WINDOWS = (
    "Take up to accumulation_steps microbatches, call update with the sum of their gradients over "
    "the sum of their targets, and go on until nothing is left."
)
LOST = Mistake(
    "The tail was lost: no update was made from the last, shorter window. `(i + 1) % k == 0` never "
    "holds for it.",
    when=lambda result: len(result) < 2 and np.allclose(result[0], each(own_mean)[0]),
)
FLUSHED = "An empty window was flushed. Flush only if something was taken since the last update."
EMPTY = (
    Mistake(FLUSHED, when=lambda result: len(result) in (1, 3)),
    Mistake(FLUSHED, raises=ZeroDivisionError),
)
AT_LEAST_ONE = "Check accumulation_steps < 1 first, and raise ValueError with the value received."
NOT_CHECKED = (
    Mistake(AT_LEAST_ONE, raises=AssertionError),
    Mistake(AT_LEAST_ONE, raises=ZeroDivisionError),
)

CHECKS = [
    Check(
        "windows of 3 and 2 microbatches, each with its own targets",
        run=gradients(SIZES, 3),
        returns=lambda: each(own_mean),
        rtol=1e-12,
        message=WINDOWS,
        mistakes=(
            LOST,
            Mistake(
                "These are means of the microbatches' means, divided by accumulation_steps: a "
                "tail shrinks, and targets weigh unequally. Divide the summed gradients by the "
                "summed targets.",
                returns=lambda: each(lambda window: sum(g / n for g, n in window) / 3),
            ),
            Mistake(
                "These are means of the microbatches' means: a target in a small microbatch weighs "
                "more. Divide the summed gradients by the summed targets.",
                returns=lambda: each(lambda window: sum(g / n for g, n in window) / len(window)),
            ),
            Mistake(
                "The fourth microbatch is in no window: `zip(stream, range(k))` takes one more "
                "than it gives, and drops it. Take with `itertools.islice(stream, k)`.",
                returns=lambda: [own_mean(data()[:3]), own_mean(data()[4:])],
            ),
            Mistake(
                "These are sums. Divide by the number of targets in the window.",
                returns=lambda: each(lambda window: sum(g for g, n in window)),
            ),
            Mistake(
                "The gradients were divided by the number of microbatches. Divide by the number "
                "of targets in the window.",
                returns=lambda: each(lambda window: sum(g for g, n in window) / len(window)),
            ),
            Mistake(
                "The gradients were divided by accumulation_steps. Divide by the number of "
                "targets in the window.",
                returns=lambda: each(lambda window: sum(g for g, n in window) / 3),
            ),
            Mistake(
                "The sum was not set back after the first update, so its gradient is in the "
                "second as well. Begin each window at zero.",
                returns=leaking,
            ),
            Mistake(
                "The number of targets was not set back after the first update. Begin each "
                "window at zero.",
                returns=lambda: [
                    own_mean(data()[:3]),
                    sum(g for g, n in data()[3:]) / sum(SIZES),
                ],
            ),
            Mistake(
                "Sum and number of targets were not set back after the first update. Begin each "
                "window at zero.",
                returns=lambda: [own_mean(data()[:3]), own_mean(data())],
            ),
            Mistake(
                "update was called for every microbatch. Call it once for each window.",
                when=lambda result: len(result) == len(SIZES),
            ),
        ),
    ),
    Check(
        "no tail: four microbatches in windows of 2",
        run=gradients(SIZES[:4], 2),
        returns=lambda: each(own_mean, SIZES[:4], 2),
        rtol=1e-12,
        message=WINDOWS,
        mistakes=EMPTY,
    ),
    Check(
        "only a tail: two microbatches in a window of 3",
        run=gradients(SIZES[:2], 3),
        returns=lambda: each(own_mean, SIZES[:2], 3),
        rtol=1e-12,
        message=WINDOWS,
        mistakes=(
            Mistake(
                "A stream shorter than one window made no update at all: its tail was lost.",
                when=lambda result: result == [],
            ),
        ),
    ),
    Check(
        "an empty stream makes no update",
        run=gradients((), 3),
        returns=[],
        message="Nothing was taken, so nothing is to be flushed.",
        mistakes=EMPTY,
    ),
    Check(
        "lazy: an update comes before the next microbatch is taken",
        run=events(SIZES, 2),
        returns=["take", "take", "update", "take", "take", "update", "take", "update"],
        message="These are the microbatches taken and the updates made, in order. Take those of "
        "one window, update, and only then go on.",
        mistakes=(
            Mistake(
                "All microbatches were taken before the first update: an endless stream would "
                "never train. Take the microbatches of one window only; no list(stream).",
                when=lambda result: result[:5] == ["take"] * 5,
            ),
            Mistake(
                "One microbatch too many is taken before an update: it would be lost if the run "
                "stopped there. Update as soon as the window is full, without looking ahead.",
                when=lambda result: result[:3] == ["take"] * 3,
            ),
            Mistake(
                "The tail was lost: after the last microbatch comes no update.",
                when=lambda result: result[-1] == "take",
            ),
        ),
    ),
    Check(
        "returns the number of updates",
        run=returned,
        returns=[2, 2, 1, 5, 0],
        message="Count the calls of update, that for the tail included.",
        mistakes=(
            Mistake(
                "Only full windows were counted. Count the tail's update as well.",
                returns=[1, 2, 0, 5, 0],
            ),
            Mistake(FLUSHED, raises=ZeroDivisionError),
        ),
    ),
    Check(
        "accumulation_steps of 0 raises ValueError",
        run=lambda accumulate: accumulate(Sealed(data()), 0, Update()),
        raises=ValueError,
        message=AT_LEAST_ONE,
        mistakes=NOT_CHECKED,
    ),
    Check(
        "accumulation_steps of -1 raises ValueError",
        run=lambda accumulate: accumulate(Sealed(data()), -1, Update()),
        raises=ValueError,
        message=AT_LEAST_ONE,
        mistakes=NOT_CHECKED,
    ),
    Check(
        "the arrays of the stream stay as they are",
        run=stream_afterwards,
        returns=data,
        message="These are the microbatches of the stream after the call.",
        mistakes=(
            Mistake(
                "The first array of a window was added to: `total = g` gives it a second "
                "name, and `total += ...` writes into it. Begin with g.copy(), or write "
                "`total = total + g`.",
                when=lambda result: not np.array_equal(result[0][0], data()[0][0]),
            ),
        ),
    ),
]
