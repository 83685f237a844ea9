# fails with: The inputs were multiplied by `kept` as well
import numpy as np


def segment_peaks(layer_count, kept, segments):
    return kept * (-(-layer_count // segments) + segments)


def best_segment(layer_count, kept):
    segments = np.arange(1, layer_count + 1)
    return int(segments[np.argmin(segment_peaks(layer_count, kept, segments))])
