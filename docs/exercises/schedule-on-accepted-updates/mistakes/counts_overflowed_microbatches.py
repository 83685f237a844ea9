# fails with: A window is skipped once, however many
import numpy as np


def clocks_and_rates(overflow, accumulation_steps, base_rate, warmup):
    clocks = {"microbatches": len(overflow), "attempted": 0, "accepted": 0, "skipped": 0}
    rates = []
    for start in range(0, len(overflow), accumulation_steps):
        window = overflow[start : start + accumulation_steps]
        share = (clocks["accepted"] + 1) / warmup if warmup else 1.0
        rates.append(base_rate * min(1.0, share))
        clocks["attempted"] += 1
        clocks["skipped"] += int(window.sum())
        clocks["accepted"] += not window.any()
    return clocks, np.array(rates)
