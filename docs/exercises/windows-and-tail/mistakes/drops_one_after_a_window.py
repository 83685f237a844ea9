# fails with: takes one more than it gives, and drops it
def accumulate(stream, accumulation_steps, update):
    if accumulation_steps < 1:
        raise ValueError(f"accumulation_steps must be at least 1, got {accumulation_steps}")
    updates = 0
    while window := [pair for pair, _ in zip(stream, range(accumulation_steps), strict=False)]:
        update(sum(g for g, n in window) / sum(n for g, n in window))
        updates += 1
    return updates
