# fails with: This is the index of the best segment
import numpy as np


def segment_peaks(layer_count, kept, segments):
    return -(-layer_count // segments) + kept * segments


def best_segment(layer_count, kept):
    segments = np.arange(1, layer_count + 1)
    return int(np.argmin(segment_peaks(layer_count, kept, segments)))
