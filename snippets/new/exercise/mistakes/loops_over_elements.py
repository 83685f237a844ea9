# fails with: Let NumPy square and average the whole array
def mean_square(x):
    total = 0.0
    for value in x.ravel():
        total += value * value
    return float(total / x.size)
