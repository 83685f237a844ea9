import numpy as np


def clocks_and_rates(
    overflow: np.ndarray, accumulation_steps: int, base_rate: float, warmup: int
) -> tuple[dict[str, int], np.ndarray]:
    """Count microbatches, attempted, accepted and skipped windows, and give their rates.

    `overflow[i]` says that microbatch i overflowed. The rate warms up over accepted updates.
    """
    starts = np.arange(0, len(overflow), accumulation_steps)
    accepted = ~np.logical_or.reduceat(overflow, starts)
    before = np.cumsum(accepted) - accepted
    clocks = {
        "microbatches": len(overflow),
        "attempted": len(starts),
        "accepted": int(accepted.sum()),
        "skipped": int((~accepted).sum()),
    }
    return clocks, base_rate * np.minimum(1.0, (before + 1) / max(warmup, 1))
