"""One seeded script per figure: python -m snippets.figures draws all of them."""

from snippets.figures import (
    amp_order,
    bad_batch,
    clip_geometry,
    clocks,
    decay,
    mean_of_means,
    norm_log,
    segment_peak,
)

FIGURES = {
    "amp-order": amp_order.draw,
    "bad-batch": bad_batch.draw,
    "clip-geometry": clip_geometry.draw,
    "clocks": clocks.draw,
    "decay": decay.draw,
    "mean-of-means": mean_of_means.draw,
    "norm-log": norm_log.draw,
    "segment-peak": segment_peak.draw,
}
