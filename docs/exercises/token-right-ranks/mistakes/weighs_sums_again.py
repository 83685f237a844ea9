# fails with: is the weight of a local *mean*
def scale_for_average(grads, counts):
    targets = int(counts.sum())
    if targets == 0:
        raise ValueError("no target")
    for own, count in zip(grads, counts.sum(axis=1), strict=True):
        for g in own:
            g *= len(grads) * count / targets
    return targets
