# fails with: Each rank was divided by its own targets
def scale_for_average(grads, counts):
    if not counts.any():
        raise ValueError("no target")
    for own, count in zip(grads, counts.sum(axis=1), strict=True):
        for g in own:
            g /= count
    return int(counts.sum())
