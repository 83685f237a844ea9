import numpy as np


def clocks_and_rates(
    overflow: np.ndarray, accumulation_steps: int, base_rate: float, warmup: int
) -> tuple[dict[str, int], np.ndarray]:
    """Count microbatches, attempted, accepted and skipped windows, and give their rates.

    `overflow[i]` says that microbatch i overflowed. The rate warms up over accepted updates.
    """
    ...
