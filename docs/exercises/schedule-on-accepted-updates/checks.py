"""What a solution of schedule-on-accepted-updates must do."""

import numpy as np
from grader import Check, Mistake

FUNCTIONS = {"clocks_and_rates": ("overflow", "accumulation_steps", "base_rate", "warmup")}


def run(microbatches, *overflowed):
    overflow = np.zeros(microbatches, bool)
    overflow[list(overflowed)] = True
    return overflow


def accepted_windows(overflow, k):
    return np.array([not overflow[i : i + k].any() for i in range(0, len(overflow), k)], bool)


def warmed(base_rate, warmup, updates):
    return base_rate * np.minimum(1.0, np.asarray(updates, float) / max(warmup, 1))


def right(overflow, k, base_rate, warmup):
    accepted = accepted_windows(overflow, k)
    done = int(accepted.sum())
    clocks = {
        "microbatches": len(overflow),
        "attempted": len(accepted),
        "accepted": done,
        "skipped": len(accepted) - done,
    }
    return clocks, warmed(base_rate, warmup, np.cumsum(accepted) - accepted + 1)


def clock(name, wrong, message):
    """The mistake that one clock is a wrong number, a function of the arguments."""
    return Mistake(
        message,
        when=lambda result, *args: result[0][name] == wrong(*args) != right(*args)[0][name],
    )


def rates(wrong, message):
    """The mistake that the rates are wrong ones, a function of the arguments."""

    def fits(result, *args):
        found = np.asarray(result[1])

        def are(these):
            return found.shape == these.shape and np.allclose(found, these, rtol=1e-6, atol=0)

        return are(wrong(*args)) and not are(right(*args)[1])

    return Mistake(message, when=fits)


def each_window(overflow, k):
    return np.arange(len(range(0, len(overflow), k)))


SHAPE = "Return the dict of the four clocks, then the array of rates."
RATE = "The rate is base_rate * min(1, (t + 1) / warmup) after t accepted updates."
TAIL = (
    clock(
        "attempted",
        lambda overflow, k, *rest: len(overflow) // k,
        "The last window was dropped: it has fewer microbatches, but it is flushed as an update "
        "of its own.",
    ),
    clock(
        "microbatches",
        lambda overflow, k, *rest: -(-len(overflow) // k) * k,
        "The last window was counted as a full one. Microbatches counts what there was: "
        "`len(overflow)`.",
    ),
)
SKIPS = (
    clock(
        "accepted",
        lambda overflow, *rest: len(overflow) - overflow.sum(),
        "Accepted counts microbatches here. Count windows: those without any overflow.",
    ),
    clock(
        "skipped",
        lambda overflow, *rest: overflow.sum(),
        "Skipped counts microbatches here. A window is skipped once, however many of its "
        "microbatches overflowed.",
    ),
    clock(
        "skipped",
        lambda overflow, k, *rest: sum(overflow[i : i + k][-1] for i in range(0, len(overflow), k)),
        "Only the last microbatch of a window was looked at. Any of them makes the sum of the "
        "gradients infinite: use `any()` over the window.",
    ),
    clock(
        "skipped",
        lambda overflow, k, *rest: sum(
            overflow[i : i + k].all() for i in range(0, len(overflow), k)
        ),
        "A window is skipped if *any* of its microbatches overflowed, not only if all did.",
    ),
    clock(
        "attempted",
        lambda overflow, k, *rest: accepted_windows(overflow, k).sum(),
        "A skipped window is an attempted one too: attempted is accepted plus skipped.",
    ),
)
RATES = (
    rates(
        lambda overflow, k, base, w: warmed(base, w, each_window(overflow, k) + 1),
        "The schedule follows attempted windows, and advances with skipped ones too. Count "
        "accepted updates only.",
    ),
    rates(
        lambda overflow, k, base, w: warmed(base, w, each_window(overflow, k) * k + 1),
        "The schedule follows microbatches: its warm-up ends k times too early. Count accepted "
        "updates.",
    ),
    rates(
        lambda overflow, k, base, w: warmed(base, w, (each_window(overflow, k) + 1) * k),
        "The schedule follows microbatches: its warm-up ends k times too early. Count accepted "
        "updates.",
    ),
    rates(
        lambda overflow, k, base, w: warmed(
            base, w, np.cumsum(done := accepted_windows(overflow, k)) - done
        ),
        "The warm-up starts at 0, so the first update moves nothing. The rate has t + 1, and the "
        "first t is 0.",
    ),
    rates(
        lambda overflow, k, base, w: warmed(
            base, w + 1, np.cumsum(done := accepted_windows(overflow, k)) - done + 1
        ),
        "The warm-up is one update too long: divide t + 1 by warmup, not by warmup + 1.",
    ),
    rates(
        lambda overflow, k, base, w: warmed(base, w, np.cumsum(accepted_windows(overflow, k)) + 1),
        "Each window was counted before its rate was taken. t is the number of accepted updates "
        "*before* the window.",
    ),
    rates(
        lambda overflow, k, base, w: right(overflow, k, base, w)[1] * accepted_windows(overflow, k),
        "A skipped window has a rate too: the one with which it was attempted, not 0.",
    ),
    rates(
        lambda overflow, k, base, w: right(overflow, k, base, w)[1][accepted_windows(overflow, k)],
        "The rates of skipped windows are missing. Give one for each attempted window.",
    ),
    rates(
        lambda overflow, k, base, w: (
            base / w * (np.cumsum(done := accepted_windows(overflow, k)) - done + 1)
        ),
        "The rate grows past base_rate when the warm-up is over. Take min(1, (t + 1) / warmup).",
    ),
)

CHECKS = [
    Check(
        "windows that all fit",
        args=lambda: (run(6), 2, 0.5, 0),
        returns=right,
        rtol=1e-9,
        message=SHAPE,
        mistakes=(
            Mistake("Without a warm-up every rate is base_rate.", raises=ZeroDivisionError),
            Mistake(
                "0 in the denominator: without a warm-up every rate is base_rate.",
                when=lambda result, *args: not np.isfinite(result[1]).all(),
            ),
            *SKIPS,
        ),
    ),
    Check(
        "a shorter last window is flushed",
        args=lambda: (run(10), 4, 0.5, 1),
        returns=right,
        rtol=1e-9,
        message=SHAPE,
        mistakes=(*TAIL, *SKIPS, *RATES),
    ),
    Check(
        "a window with an overflow is skipped once",
        args=lambda: (run(12, 5, 6, 11), 4, 0.5, 1),
        returns=right,
        rtol=1e-9,
        message=f"Accepted and skipped windows add up to attempted ones. {RATE}",
        mistakes=(*SKIPS, *RATES),
    ),
    Check(
        "an overflow in the last, shorter window",
        args=lambda: (run(9, 0, 3, 8), 4, 0.5, 1),
        returns=right,
        rtol=1e-9,
        message=f"The last window is skipped by the same rule as the others. {RATE}",
        mistakes=(*TAIL, *SKIPS, *RATES),
    ),
    Check(
        "the warm-up counts updates, not microbatches",
        args=lambda: (run(20), 4, 0.1, 8),
        returns=right,
        rtol=1e-9,
        message=RATE,
        mistakes=(*TAIL, *RATES),
    ),
    Check(
        "a skipped window does not advance the schedule",
        args=lambda: (run(17, 4, 5, 12), 3, 0.1, 8),
        returns=right,
        rtol=1e-9,
        message=RATE,
        mistakes=(*TAIL, *SKIPS, *RATES),
    ),
    Check(
        "after the warm-up the rate stays",
        args=lambda: (run(12, 1), 2, 0.3, 3),
        returns=right,
        rtol=1e-9,
        message=RATE,
        mistakes=(*SKIPS, *RATES),
    ),
    Check(
        "no microbatches, no windows",
        args=lambda: (run(0), 4, 0.1, 3),
        returns=right,
        message="Four zeros, and an empty array: `np.array([])` has shape (0,).",
    ),
]
