"""A bounded log of gradient norms before clipping, which no NaN can spoil."""

import math
from collections import deque
from collections.abc import Sequence
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from ._arguments import at_least_zero, integer_from, number

__all__ = ["NormLog"]


class NormLog:
    """The newest pre-clip norms and clip coefficients, with their quantiles.

    A plot of norms *after* clipping is pinned at the threshold and says nothing. This keeps
    the norms from before, and of each the clip coefficient: the factor by which clipping
    rescaled the gradient, 1 where nothing was clipped. NaN and infinite norms are counted and
    never kept, so no quantile can be NaN or infinite. Memory does not grow beyond `size`.

    Args:
        size: How many finite norms are kept, at least 1; the oldest make room.

    Attributes:
        added: How many norms have been added since the beginning, finite or not.
        nonfinite: How many of those were NaN or infinite.

    Raises:
        TypeError: `size` is no integer.
        ValueError: `size` is less than 1.

    Examples:
        >>> from gradstep import NormLog
        >>> log = NormLog(size=100)
        >>> for norm in (0.5, 2.0, 4.0, float("nan"), 1.0):
        ...     log.add(norm, max_norm=1.0)
        >>> log.norms
        [0.5, 2.0, 4.0, 1.0]
        >>> log.norm_quantile(0.5), log.clipped_share, log.nonfinite
        (1.5, 0.5, 1)
        >>> log.coefficient_quantile(0)  # the hardest clip
        0.25

    Source:
        Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural
        networks", 2013, section 3.2, sets the threshold from such statistics (arXiv
        1211.5063).
    """

    def __init__(self, size: SupportsIndex = 1000) -> None:
        kept = integer_from(1, "size", size)
        self.added = 0
        self.nonfinite = 0
        self._norms: deque[float] = deque(maxlen=kept)
        self._coefficients: deque[float] = deque(maxlen=kept)

    def add(self, norm: SupportsFloat, max_norm: SupportsFloat = math.inf) -> None:
        """Add the norm of one update, as it was before clipping.

        An update is clipped where its norm is above `max_norm`, as `gradstep` clips; torch
        also multiplies at exactly `max_norm`. Reading a norm that is a tensor on an
        accelerator waits for the device: add where you read values back anyway.

        Args:
            norm: What `clip_grad_norm_` returned, a number or a tensor with one entry; or
                `pre_clip_norm` of an [`Update`][gradstep.Update].
            max_norm: The threshold in force for this update; infinite where none was.

        Raises:
            TypeError: `norm` or `max_norm` is no number.
            ValueError: `norm` is negative, or `max_norm` is negative or NaN.
        """
        found, bound = number("norm", norm), at_least_zero("max_norm", max_norm)
        if found < 0:
            raise ValueError(
                f"norm must be at least 0, got {found}, which is no norm. Add what "
                "clip_grad_norm_ returned."
            )
        self.added += 1
        if not math.isfinite(found):
            self.nonfinite += 1
            return
        self._norms.append(found)
        self._coefficients.append(bound / found if found > bound else 1.0)

    def __len__(self) -> int:
        """How many finite norms are kept now."""
        return len(self._norms)

    @property
    def norms(self) -> list[float]:
        """The finite norms that are kept, oldest first."""
        return list(self._norms)

    @property
    def clip_coefficients(self) -> list[float]:
        """The clip coefficient of each of `norms`, from 0 to 1; 1 where nothing was clipped."""
        return list(self._coefficients)

    @property
    def clipped_share(self) -> float:
        """The share of `norms` that were clipped, from 0 to 1; `ValueError` where none is kept."""
        # below 1 exactly where norm > max_norm: a quotient of unequal floats never rounds to 1
        return sum(c < 1 for c in self._kept(self._coefficients)) / len(self)

    def norm_quantile(self, q: SupportsFloat) -> float:
        """A quantile of `norms`, interpolated between neighbours.

        An empty log raises, because a NaN would look like a NaN norm: ask `len(log)` first.

        Args:
            q: From 0, the smallest, to 1, the largest; 0.5 is the median.

        Raises:
            TypeError: `q` is no number.
            ValueError: `q` is not from 0 to 1, or no finite norm is kept.
        """
        return _quantile(self._kept(self._norms), q)

    def coefficient_quantile(self, q: SupportsFloat) -> float:
        """A quantile of `clip_coefficients`: at 0 the hardest clip.

        Arguments and errors are those of `norm_quantile`.
        """
        return _quantile(self._kept(self._coefficients), q)

    def state_dict(self) -> dict[str, Any]:
        """All of it as plain Python values, for `torch.save` or JSON."""
        return {
            "added": self.added,
            "nonfinite": self.nonfinite,
            "norms": self.norms,
            "clip_coefficients": self.clip_coefficients,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a saved state; a smaller log keeps the newest part of it.

        Raises:
            ValueError: It is no state of a `NormLog`; this log is then unchanged.
        """
        expected = self.state_dict().keys()
        if not isinstance(state_dict, dict) or state_dict.keys() != expected:
            raise ValueError(
                f"state_dict must have the keys {', '.join(expected)}, got {state_dict!r:.80}. "
                "Pass what NormLog.state_dict() returned."
            )
        norms, coefficients = state_dict["norms"], state_dict["clip_coefficients"]
        _check_values("norms", norms, math.inf)
        _check_values("clip_coefficients", coefficients, 1)
        added, nonfinite = state_dict["added"], state_dict["nonfinite"]
        counted = type(added) is type(nonfinite) is int and 0 <= nonfinite <= added - len(norms)
        if len(norms) != len(coefficients) or not counted:
            raise ValueError(
                f"state_dict must hold one clip coefficient for each norm and count both, got "
                f"{len(norms)} norms, {len(coefficients)} coefficients, added {added}, nonfinite "
                f"{nonfinite}. Pass what NormLog.state_dict() returned."
            )
        self.added, self.nonfinite = added, nonfinite
        self._norms = deque(norms, maxlen=self._norms.maxlen)
        self._coefficients = deque(coefficients, maxlen=self._norms.maxlen)

    def _kept(self, values: deque[float]) -> deque[float]:
        if not values:
            raise ValueError(
                f"the log holds no finite norm ({self.nonfinite} that were not finite have been "
                "added), so there is nothing to describe. Ask len(log) first."
            )
        return values


def _check_values(key: str, values: Any, largest: float) -> None:
    if not isinstance(values, list):
        raise ValueError(f"state_dict['{key}'] must be a list, got a {type(values).__name__}.")
    for index, value in enumerate(values):
        if type(value) is not float or not (0 <= value <= largest and value < math.inf):
            raise ValueError(
                f"state_dict['{key}'] must hold finite numbers from 0 to {largest}, got {value!r} "
                f"at index {index}. Pass what NormLog.state_dict() returned."
            )


def _quantile(values: Sequence[float], q: SupportsFloat) -> float:
    share = number("q", q)
    if not 0 <= share <= 1:
        raise ValueError(f"q must be from 0 to 1, got {share}. For the 95th percentile pass 0.95.")
    return float(np.quantile(values, share))
