import itertools
from collections.abc import Callable, Iterator

import numpy as np


def accumulate(
    stream: Iterator[tuple[np.ndarray, int]],
    accumulation_steps: int,
    update: Callable[[np.ndarray], None],
) -> int:
    """Call `update` with the mean gradient of each window of microbatches, tail included.

    Returns the number of updates.
    """
    if accumulation_steps < 1:
        raise ValueError(f"accumulation_steps must be at least 1, got {accumulation_steps}")
    updates = 0
    while window := list(itertools.islice(stream, accumulation_steps)):
        update(sum(g for g, n in window) / sum(n for g, n in window))
        updates += 1
    return updates
