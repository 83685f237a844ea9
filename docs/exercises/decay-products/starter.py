import numpy as np


def decay_factor(rates: np.ndarray, decay: float) -> float:
    """What decoupled weight decay alone leaves of a weight after updates at these rates."""
    ...


def matching_decay(rates: np.ndarray, decay: float, new_rates: np.ndarray) -> float:
    """The decay that leaves as much under `new_rates` as `decay` does under `rates`."""
    ...
