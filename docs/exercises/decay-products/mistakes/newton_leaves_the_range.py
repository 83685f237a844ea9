# fails with: NaN: the search went to a decay
import numpy as np


def decay_factor(rates, decay):
    return float(np.prod(1 - rates * decay))


def matching_decay(rates, decay, new_rates):
    wanted = np.log(decay_factor(rates, decay))
    found = decay * rates.sum() / new_rates.sum()
    for _ in range(50):
        slope = np.sum(new_rates / (1 - new_rates * found))
        found += (np.sum(np.log(1 - new_rates * found)) - wanted) / slope
    return float(found)
