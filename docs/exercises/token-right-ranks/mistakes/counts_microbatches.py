# fails with: This counts microbatches, not targets
def scale_for_average(grads, counts):
    if not counts.any():
        raise ValueError("no target")
    for own in grads:
        for g in own:
            g *= len(grads) / counts.size
    return int(counts.sum())
