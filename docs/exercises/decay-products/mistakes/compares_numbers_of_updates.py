# fails with: Only the numbers of updates were compared
import numpy as np


def decay_factor(rates, decay):
    return float(np.prod(1 - rates * decay))


def matching_decay(rates, decay, new_rates):
    return decay * len(rates) / len(new_rates)
