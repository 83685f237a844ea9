# fails with: Another k has the same peak, and is smaller
import numpy as np


def segment_peaks(layer_count, kept, segments):
    return -(-layer_count // segments) + kept * segments


def best_segment(layer_count, kept):
    segments = np.arange(layer_count, 0, -1)
    return int(segments[np.argmin(segment_peaks(layer_count, kept, segments))])
