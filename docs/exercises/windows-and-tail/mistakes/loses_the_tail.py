# fails with: The tail was lost: no update was made
def accumulate(stream, accumulation_steps, update):
    if accumulation_steps < 1:
        raise ValueError(f"accumulation_steps must be at least 1, got {accumulation_steps}")
    total, targets, updates = 0.0, 0, 0
    for i, (g, n) in enumerate(stream):
        total, targets = total + g, targets + n
        if (i + 1) % accumulation_steps == 0:
            update(total / targets)
            total, targets, updates = 0.0, 0, updates + 1
    return updates
