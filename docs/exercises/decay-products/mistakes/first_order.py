# fails with: the first order only
import numpy as np


def decay_factor(rates, decay):
    return float(np.prod(1 - rates * decay))


def matching_decay(rates, decay, new_rates):
    return float(decay * rates.sum() / new_rates.sum())
