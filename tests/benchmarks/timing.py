"""Time functions side by side: one round calls each of them once, and rounds repeat."""

from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter

Call = Callable[[], object]


def side_by_side(calls: Mapping[str, Call], rounds: int) -> dict[str, list[float]]:
    """Seconds of each call in each round; the first round warms up and is not kept.

    Each round begins with another call: which one ran before decides what is in the caches.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls.items())
    for _ in range(rounds + 1):
        order.append(order.pop(0))
        for name, call in order:
            start = perf_counter()
            call()
            seconds[name].append(perf_counter() - start)
    return {name: kept[1:] for name, kept in seconds.items()}


def ratio(slow: list[float], fast: list[float]) -> float:
    """How many times as long `slow` took, as the median over rounds of the ratio in a round."""
    return median(s / f for s, f in zip(slow, fast, strict=True))


def table(title: str, head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join([f"### {title}", "", *(f"| {' | '.join(line)} |" for line in lines), ""])
