# fails with: An empty window was flushed
def accumulate(stream, accumulation_steps, update):
    if accumulation_steps < 1:
        raise ValueError(f"accumulation_steps must be at least 1, got {accumulation_steps}")
    total, targets, taken, updates = 0.0, 0, 0, 0
    for g, n in stream:
        total, targets, taken = total + g, targets + n, taken + 1
        if taken == accumulation_steps:
            update(total / targets)
            total, targets, taken, updates = 0.0, 0, 0, updates + 1
    update(total / targets)
    return updates + 1
