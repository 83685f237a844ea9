# fails with: Two moments were counted, those of Adam
import math

import numpy as np


def state_bytes(shapes, trained, dtype, optimizer, master):
    itemsize = np.dtype(dtype).itemsize
    sizes = [math.prod(shape) for shape in shapes]
    count = sum(size for size, learns in zip(sizes, trained, strict=True) if learns)
    found = {
        "parameters": sum(sizes) * itemsize,
        "gradients": count * itemsize,
        "moments": count * 2 * (4 if master else itemsize),
        "master_weights": count * 4 if master else 0,
    }
    return found | {"total": sum(found.values())}
