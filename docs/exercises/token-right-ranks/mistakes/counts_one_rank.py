# fails with: This is the number of targets on one rank
def scale_for_average(grads, counts):
    targets = counts.sum(axis=1)
    if not targets.any():
        raise ValueError("no target")
    for own in grads:
        for g in own:
            g *= len(grads) / targets.sum()
    return int(targets[0])
