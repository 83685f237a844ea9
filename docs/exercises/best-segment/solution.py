import numpy as np


def segment_peaks(layer_count: int, kept: int, segments: np.ndarray) -> np.ndarray:
    """The peak in activations for each number of layers in `segments`.

    `kept` is what a layer keeps for backward, in units of a segment's input.
    """
    return -(-layer_count // segments) + kept * segments


def best_segment(layer_count: int, kept: int) -> int:
    """The layers of a segment with the least peak; of several, the smallest."""
    segments = np.arange(1, layer_count + 1)
    return int(segments[np.argmin(segment_peaks(layer_count, kept, segments))])
