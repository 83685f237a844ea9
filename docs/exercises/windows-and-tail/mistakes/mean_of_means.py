# fails with: These are means of the microbatches' means: a target in a small
import itertools


def accumulate(stream, accumulation_steps, update):
    if accumulation_steps < 1:
        raise ValueError(f"accumulation_steps must be at least 1, got {accumulation_steps}")
    updates = 0
    while window := list(itertools.islice(stream, accumulation_steps)):
        update(sum(g / n for g, n in window) / len(window))
        updates += 1
    return updates
