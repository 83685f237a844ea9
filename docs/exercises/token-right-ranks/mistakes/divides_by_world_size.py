# fails with: You divided by R as well
def scale_for_average(grads, counts):
    targets = int(counts.sum())
    if targets == 0:
        raise ValueError("no target")
    for own in grads:
        for g in own:
            g /= targets * len(grads)
    return targets
