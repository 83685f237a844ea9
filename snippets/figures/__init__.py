"""One seeded script per figure: python -m snippets.figures draws all of them."""

from snippets.figures import bad_batch, clip_geometry, norm_log

FIGURES = {
    "bad-batch": bad_batch.draw,
    "clip-geometry": clip_geometry.draw,
    "norm-log": norm_log.draw,
}
