# fails with: The average comes out R times too small
def scale_for_average(grads, counts):
    targets = int(counts.sum())
    if targets == 0:
        raise ValueError("no target")
    for own in grads:
        for g in own:
            g /= targets
    return targets
