# fails with: One microbatch too many is taken before an update
def accumulate(stream, accumulation_steps, update):
    if accumulation_steps < 1:
        raise ValueError(f"accumulation_steps must be at least 1, got {accumulation_steps}")
    window, updates = [], 0
    for microbatch in stream:
        if len(window) == accumulation_steps:
            update(sum(g for g, n in window) / sum(n for g, n in window))
            window, updates = [], updates + 1
        window.append(microbatch)
    if window:
        update(sum(g for g, n in window) / sum(n for g, n in window))
        updates += 1
    return updates
