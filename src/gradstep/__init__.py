"""Everything that happens to a gradient between `backward()` and `step()`."""

from . import arrays
from ._arguments import NonfiniteGradientError
from .clipping import clip_grad_norm_, clip_grad_value_, global_norm

__all__ = [
    "NonfiniteGradientError",
    "arrays",
    "clip_grad_norm_",
    "clip_grad_value_",
    "global_norm",
]
