# fails with: The rank without targets was left out of R
def scale_for_average(grads, counts):
    local = counts.sum(axis=1)
    if not local.any():
        raise ValueError("no target")
    factor = (local > 0).sum() / local.sum()
    for own in grads:
        for g in own:
            g *= factor
    return int(local.sum())
