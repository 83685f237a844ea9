# fails with: Accepted counts microbatches here
import numpy as np


def clocks_and_rates(overflow, accumulation_steps, base_rate, warmup):
    starts = np.arange(0, len(overflow), accumulation_steps)
    accepted = ~np.logical_or.reduceat(overflow, starts)
    before = np.cumsum(accepted) - accepted
    clocks = {
        "microbatches": len(overflow),
        "attempted": len(starts),
        "accepted": int((~overflow).sum()),
        "skipped": int((~accepted).sum()),
    }
    return clocks, base_rate * np.minimum(1.0, (before + 1) / max(warmup, 1))
