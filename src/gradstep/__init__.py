"""Everything that happens to a gradient between `backward()` and `step()`."""

from . import arrays
from ._arguments import NonfiniteGradientError
from .accumulation import updates, windows
from .activation_bytes import peak_activation_bytes
from .batches import Batches
from .buffers import moving_buffers, replay_buffers
from .clipping import clip_grad_norm_, clip_grad_value_, global_norm
from .decay import decay_factor, matching_decay
from .low_precision import accumulate_in_float32
from .norm_log import NormLog
from .objectives import Additive, CrossEntropy, MeanSquaredError, Objective, count_targets
from .recompute import best_segment, checkpoint_chain, segment_peak
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
    "best_segment",
    "checkpoint_chain",
    "clip_grad_norm_",
    "clip_grad_value_",
    "count_targets",
    "decay_factor",
    "global_norm",
    "matching_decay",
    "moving_buffers",
    "peak_activation_bytes",
    "planned_state_bytes",
    "replay_buffers",
    "segment_peak",
    "state_bytes",
    "updates",
    "windows",
]
