# fails with: grads was not changed at all
def scale_for_average(grads, counts):
    targets = int(counts.sum())
    if targets == 0:
        raise ValueError("no target")
    for own in grads:
        for g in own:
            g = g * len(grads) / targets
    return targets
