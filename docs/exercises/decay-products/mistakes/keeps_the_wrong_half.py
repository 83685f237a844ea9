# fails with: it kept the wrong half
import numpy as np


def decay_factor(rates, decay):
    return float(np.prod(1 - rates * decay))


def matching_decay(rates, decay, new_rates):
    wanted = decay_factor(rates, decay)
    low, high = (0.0, 1 / float(new_rates.max()))
    for _ in range(100):
        middle = (low + high) / 2
        if decay_factor(new_rates, middle) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2
