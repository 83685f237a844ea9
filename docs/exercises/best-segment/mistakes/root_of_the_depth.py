# fails with: This is the square root of L. A layer keeps
import math


def segment_peaks(layer_count, kept, segments):
    return -(-layer_count // segments) + kept * segments


def best_segment(layer_count, kept):
    return round(math.sqrt(layer_count))
