"""What one window did, and what all windows of a run have done."""

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Clocks", "Update"]


@dataclass(frozen=True)
class Update:
    """What one accumulation window did.

    Attributes:
        window: Its number within the call, from 0.
        microbatches: How many microbatches it held, on this rank; the tail may hold fewer.
        targets: Its denominator: supervised targets, elements, or the sum of weights, on all
            ranks together, as are mean loss, norm and decision.
        mean_loss: The loss sum over the window divided by `targets`.
        pre_clip_norm: The norm of the complete, unscaled gradient before clipping; NaN or
            infinite where the scaler skipped the optimizer step.
        clip_coefficient: The factor that clipping applied, 1 below the threshold; NaN
            where nothing was applied.
        learning_rate: The rate of the first parameter group in this update.
        accepted: Whether the optimizer stepped.
    """

    window: int
    microbatches: int
    targets: float
    mean_loss: float
    pre_clip_norm: float
    clip_coefficient: float
    learning_rate: float
    accepted: bool


@dataclass
class Clocks:
    """What a run has done so far. Each clock counts one thing, none is derived from a step.

    Attributes:
        microbatches: Forward and backward passes.
        attempted: Windows completed, accepted or not.
        accepted: Optimizer steps taken; the scheduler follows this clock.
        skipped: Windows that the scaler rejected.
        targets: Denominators of the accepted windows, added up.

    Examples:
        >>> import gradstep
        >>> clocks = gradstep.Clocks()
        >>> clocks.count(gradstep.Update(0, 3, 9, 1.2, 0.8, 1.0, 0.1, accepted=True))
        >>> clocks
        Clocks(microbatches=3, attempted=1, accepted=1, skipped=0, targets=9)
    """

    microbatches: int = 0
    attempted: int = 0
    accepted: int = 0
    skipped: int = 0
    targets: float = 0

    def count(self, update: Update) -> None:
        """Advance by one window."""
        self.microbatches += update.microbatches
        self.attempted += 1
        self.accepted += update.accepted
        self.skipped += not update.accepted
        self.targets += update.targets if update.accepted else 0

    def state_dict(self) -> dict[str, float]:
        """All clocks, to be saved."""
        return asdict(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Set all clocks to what `state_dict` returned.

        Raises:
            ValueError: `state` is something else. Nothing is changed.
        """
        names = self.state_dict().keys()
        if (
            not isinstance(state, dict)
            or state.keys() != names
            or not all(map(_is_count, state.values()))
        ):
            raise ValueError(
                f"state must hold numbers of at least 0 for {', '.join(names)}, got {state!r:.80}. "
                "Pass what state_dict() returned."
            )
        vars(self).update(state)


def _is_count(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
