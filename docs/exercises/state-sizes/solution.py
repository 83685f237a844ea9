import math

import numpy as np

MOMENTS = {"sgd": 0, "momentum": 1, "adam": 2, "amsgrad": 3}


def state_bytes(
    shapes: list[tuple[int, ...]], trained: list[bool], dtype: str, optimizer: str, master: bool
) -> dict[str, int]:
    """Bytes of what lives from update to update, by kind, and in total.

    The optimizer is "sgd", "momentum", "adam" or "amsgrad"; `master` is whether it works on a
    float32 copy of the trained parameters.
    """
    itemsize = np.dtype(dtype).itemsize
    sizes = [math.prod(shape) for shape in shapes]
    count = sum(size for size, learns in zip(sizes, trained, strict=True) if learns)
    found = {
        "parameters": sum(sizes) * itemsize,
        "gradients": count * itemsize,
        "moments": count * MOMENTS[optimizer] * (4 if master else itemsize),
        "master_weights": count * 4 if master else 0,
    }
    return found | {"total": sum(found.values())}
