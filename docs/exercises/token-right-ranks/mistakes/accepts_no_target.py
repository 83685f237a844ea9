# fails with: N is 0 here. Look at it before you divide
def scale_for_average(grads, counts):
    targets = int(counts.sum())
    factor = len(grads) / targets
    for own in grads:
        for g in own:
            g *= factor
    return targets
