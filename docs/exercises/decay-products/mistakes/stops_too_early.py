# fails with: The search stopped too early
import numpy as np


def decay_factor(rates, decay):
    return float(np.prod(1 - rates * decay))


def matching_decay(rates, decay, new_rates):
    wanted = decay_factor(rates, decay)
    low, high = 0.0, 1 / float(new_rates.max())
    while high - low > 1e-3:
        middle = (low + high) / 2
        if decay_factor(new_rates, middle) > wanted:
            low = middle
        else:
            high = middle
    return low
