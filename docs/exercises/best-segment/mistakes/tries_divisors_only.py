# fails with: Only divisors of L were tried
def segment_peaks(layer_count, kept, segments):
    return -(-layer_count // segments) + kept * segments


def best_segment(layer_count, kept):
    divisors = [k for k in range(1, layer_count + 1) if layer_count % k == 0]
    return min(divisors, key=lambda k: layer_count // k + kept * k)
