"""Everything that happens to a gradient between `backward()` and `step()`."""

from . import arrays
from ._arguments import NonfiniteGradientError
from .accumulation import updates, windows
from .clipping import clip_grad_norm_, clip_grad_value_, global_norm
from .objectives import Additive, CrossEntropy, MeanSquaredError, Objective, count_targets
from .records import Clocks, Update

__all__ = [
    "Additive",
    "Clocks",
    "CrossEntropy",
    "MeanSquaredError",
    "NonfiniteGradientError",
    "Objective",
    "Update",
    "arrays",
    "clip_grad_norm_",
    "clip_grad_value_",
    "count_targets",
    "global_norm",
    "updates",
    "windows",
]
