"""Property tests are seeded, so that a failure on one machine is a failure on all."""

from hypothesis import settings

settings.register_profile("gradstep", derandomize=True, deadline=None, max_examples=150)
settings.load_profile("gradstep")
