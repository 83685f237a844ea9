import numpy as np


def clip_float16(grads: list[np.ndarray], max_norm: float) -> float:
    """Scale float16 arrays in place, so that their joint norm as stored is at most `max_norm`.

    Returns the norm before clipping, as a Python float.
    """
    wide = [g.astype(np.float64) for g in grads]
    norm = float(np.sqrt(sum(np.sum(g * g) for g in wide)))
    if norm <= max_norm:
        return norm
    entries = sum(g.size for g in grads)
    # rounding adds at most 2**-11 of an entry, or 2**-25 where that is more
    target = max(0.0, max_norm * (1 - 2**-11) - 2**-25 * np.sqrt(entries))
    for g, exact in zip(grads, wide, strict=True):
        g[...] = exact * (target / norm)
    return norm
