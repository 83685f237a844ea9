# fails with: it shrinks the decay with the number of updates
import numpy as np


def decay_factor(rates, decay):
    return float(np.prod(1 - rates * decay))


def matching_decay(rates, decay, new_rates):
    return decay * len(new_rates) / len(rates)
