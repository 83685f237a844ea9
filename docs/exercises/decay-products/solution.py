import numpy as np


def decay_factor(rates: np.ndarray, decay: float) -> float:
    """What decoupled weight decay alone leaves of a weight after updates at these rates."""
    return float(np.prod(1 - rates * decay))


def matching_decay(rates: np.ndarray, decay: float, new_rates: np.ndarray) -> float:
    """The decay that leaves as much under `new_rates` as `decay` does under `rates`."""
    wanted = decay_factor(rates, decay)
    low, high = 0.0, 1 / float(new_rates.max())
    for _ in range(100):
        middle = (low + high) / 2
        if decay_factor(new_rates, middle) > wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2
