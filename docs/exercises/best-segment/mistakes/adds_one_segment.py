# fails with: this counts one segment too many
import numpy as np


def segment_peaks(layer_count, kept, segments):
    return layer_count // segments + 1 + kept * segments


def best_segment(layer_count, kept):
    segments = np.arange(1, layer_count + 1)
    return int(segments[np.argmin(segment_peaks(layer_count, kept, segments))])
