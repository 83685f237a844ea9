# fails with: One layer is what the rule says
import math


def segment_peaks(layer_count, kept, segments):
    return -(-layer_count // segments) + kept * segments


def best_segment(layer_count, kept):
    return max(1, round(math.sqrt(layer_count / kept)))
