"""Everything that happens to a gradient between `backward()` and `step()`."""

from . import arrays
from ._arguments import NonfiniteGradientError
from .accumulation import updates, windows
from .batches import Batches
from .clipping import clip_grad_norm_, clip_grad_value_, global_norm
from .decay import decay_factor, matching_decay
from .low_precision import accumulate_in_float32
from .norm_log import NormLog
from .objectives import Additive, CrossEntropy, MeanSquaredError, Objective, count_targets
from .records import Clocks, Update
from .sizes import StateBytes, planned_state_bytes, state_bytes
from .state import TrainingState, TrainingStateError

__all__ = [
    "Additive",
    "Batches",
    "Clocks",
    "CrossEntropy",
    "MeanSquaredError",
    "NonfiniteGradientError",
    "NormLog",
    "Objective",
    "StateBytes",
    "TrainingState",
    "TrainingStateError",
    "Update",
    "accumulate_in_float32",
    "arrays",
    "clip_grad_norm_",
    "clip_grad_value_",
    "count_targets",
    "decay_factor",
    "global_norm",
    "matching_decay",
    "planned_state_bytes",
    "state_bytes",
    "updates",
    "windows",
]
