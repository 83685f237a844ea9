# fails with: All microbatches were taken before the first update
def accumulate(stream, accumulation_steps, update):
    if accumulation_steps < 1:
        raise ValueError(f"accumulation_steps must be at least 1, got {accumulation_steps}")
    microbatches = list(stream)
    starts = range(0, len(microbatches), accumulation_steps)
    for start in starts:
        window = microbatches[start : start + accumulation_steps]
        update(sum(g for g, n in window) / sum(n for g, n in window))
    return len(starts)
