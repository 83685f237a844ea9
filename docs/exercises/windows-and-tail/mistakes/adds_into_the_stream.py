# fails with: `total = g` gives it a second name
def accumulate(stream, accumulation_steps, update):
    if accumulation_steps < 1:
        raise ValueError(f"accumulation_steps must be at least 1, got {accumulation_steps}")
    total, targets, taken, updates = None, 0, 0, 0
    for g, n in stream:
        if total is None:
            total = g
        else:
            total += g
        targets, taken = targets + n, taken + 1
        if taken == accumulation_steps:
            update(total / targets)
            total, targets, taken, updates = None, 0, 0, updates + 1
    if taken:
        update(total / targets)
        updates += 1
    return updates
