# fails with: The rate grows past base_rate
import numpy as np


def clocks_and_rates(overflow, accumulation_steps, base_rate, warmup):
    clocks = {"microbatches": len(overflow), "attempted": 0, "accepted": 0, "skipped": 0}
    rates = []
    for start in range(0, len(overflow), accumulation_steps):
        window = overflow[start : start + accumulation_steps]
        share = (clocks["accepted"] + 1) / warmup if warmup else 1.0
        rates.append(base_rate * share)
        clocks["attempted"] += 1
        clocks["skipped" if window.any() else "accepted"] += 1
    return clocks, np.array(rates)
