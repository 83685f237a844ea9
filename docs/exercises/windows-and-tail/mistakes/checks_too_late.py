# fails with: a microbatch was taken. Check accumulation_steps < 1 first
def accumulate(stream, accumulation_steps, update):
    total, targets, updates = 0.0, 0, 0
    for i, (g, n) in enumerate(stream, start=1):
        if accumulation_steps < 1:
            raise ValueError(f"accumulation_steps must be at least 1, got {accumulation_steps}")
        total, targets = total + g, targets + n
        if i % accumulation_steps == 0:
            update(total / targets)
            total, targets, updates = 0.0, 0, updates + 1
    if targets:
        update(total / targets)
        updates += 1
    return updates
