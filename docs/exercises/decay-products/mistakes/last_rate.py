# fails with: Every update was taken at one rate
def decay_factor(rates, decay):
    if not rates.size:
        return 1.0
    return float((1 - rates[-1] * decay) ** len(rates))


def matching_decay(rates, decay, new_rates):
    wanted = decay_factor(rates, decay)
    low, high = 0.0, 1 / float(new_rates.max())
    for _ in range(100):
        middle = (low + high) / 2
        if decay_factor(new_rates, middle) > wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2
