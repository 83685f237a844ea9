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
    ...
