# fails with: The work in Python grows with the number of entries
import numpy as np


def segment_peaks(layer_count, kept, segments):
    peaks = np.zeros_like(segments)
    for i, k in np.ndenumerate(segments):
        peaks[i] = -(-layer_count // k) + kept * k
    return peaks


def best_segment(layer_count, kept):
    segments = np.arange(1, layer_count + 1)
    return int(segments[np.argmin(segment_peaks(layer_count, kept, segments))])
