# fails with: The shape with a 0 was counted as one entry
import math

import numpy as np

MOMENTS = {"sgd": 0, "momentum": 1, "adam": 2, "amsgrad": 3}


def state_bytes(shapes, trained, dtype, optimizer, master):
    itemsize = np.dtype(dtype).itemsize
    sizes = [math.prod(shape) or 1 for shape in shapes]
    count = sum(size for size, learns in zip(sizes, trained, strict=True) if learns)
    found = {
        "parameters": sum(sizes) * itemsize,
        "gradients": count * itemsize,
        "moments": count * MOMENTS[optimizer] * (4 if master else itemsize),
        "master_weights": count * 4 if master else 0,
    }
    return found | {"total": sum(found.values())}
