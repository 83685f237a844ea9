# fails with: These are sums. Divide by the number of targets
import itertools


def accumulate(stream, accumulation_steps, update):
    if accumulation_steps < 1:
        raise ValueError(f"accumulation_steps must be at least 1, got {accumulation_steps}")
    updates = 0
    while window := list(itertools.islice(stream, accumulation_steps)):
        update(sum(g for g, n in window))
        updates += 1
    return updates
