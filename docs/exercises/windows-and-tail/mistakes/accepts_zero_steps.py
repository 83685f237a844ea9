# fails with: Check accumulation_steps < 1 first
import itertools


def accumulate(stream, accumulation_steps, update):
    updates = 0
    while window := list(itertools.islice(stream, accumulation_steps)):
        update(sum(g for g, n in window) / sum(n for g, n in window))
        updates += 1
    return updates
