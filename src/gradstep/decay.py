"""What decoupled weight decay alone leaves of a weight, and the decay that leaves the same."""

import math
from collections.abc import Iterable
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from ._arguments import number

__all__ = ["decay_factor", "matching_decay"]

Rates = NDArray[np.float64]


def decay_factor(rates: Iterable[SupportsFloat], decay: SupportsFloat) -> float:
    """The factor by which decoupled weight decay alone has multiplied a weight after all updates.

    It is the product of `1 - rate * decay` over the updates, about `exp(-decay * sum(rates))`
    where the terms are small. It describes a weight whose gradient is zero: it is no
    prediction of an AdamW trajectory. A gradient of `None` is not zero: torch then skips the
    parameter and its decay.

    Args:
        rates: The learning rate of each accepted update, at least 0; any iterable, read once.
        decay: The `weight_decay` of the optimizer, at least 0.

    Returns:
        The factor, from 0 to 1: 1 without updates, 0 only where it is too small for a float.
        It is exact to about 1e-16 times the exponent, for millions of tiny terms too.

    Raises:
        TypeError: `rates` is no iterable of numbers, or `decay` is no number.
        ValueError: A rate or `decay` is negative or not finite, or a rate times `decay` is 1
            or more.

    Examples:
        >>> from gradstep import decay_factor
        >>> round(decay_factor([0.01] * 100, decay=0.1), 6)
        0.904792
        >>> round(0.999**100, 6)
        0.904792

    Source:
        Loshchilov and Hutter, "Decoupled weight decay regularization", 2019, algorithm 2
        (arXiv 1711.05101), with the rate times the decay as `torch.optim.AdamW` has it.
    """
    return math.exp(_log_factor(_rates("rates", rates), _at_least_zero("decay", decay)))


def matching_decay(
    rates: Iterable[SupportsFloat], decay: SupportsFloat, new_rates: Iterable[SupportsFloat]
) -> float:
    """The decay that leaves as much of a weight under `new_rates` as `decay` under `rates`.

    To first order it keeps the exponent: `decay * sum(rates) / sum(new_rates)`, so half as
    many updates at the same rate need twice the decay. This is the exact root of the product.

    Args:
        rates: The learning rates of the run to match, one for each accepted update.
        decay: Its `weight_decay`.
        new_rates: The learning rates of the other run.

    Returns:
        The `weight_decay` of the other run: 0 where `decay` is 0.

    Raises:
        TypeError: As for [`decay_factor`][gradstep.decay_factor].
        ValueError: As for [`decay_factor`][gradstep.decay_factor]; or the rates of a run are
            none or all 0; or the other run would have to erase a weight in one update.

    Examples:
        >>> from gradstep import decay_factor, matching_decay
        >>> doubled = matching_decay([0.01] * 100, 0.1, new_rates=[0.01] * 50)
        >>> round(doubled, 5)
        0.1999
        >>> round(decay_factor([0.01] * 50, doubled), 6)  # that of 100 updates with 0.1
        0.904792

    Source:
        The product of [`decay_factor`][gradstep.decay_factor], solved for the decay.
    """
    old, new = _rates("rates", rates), _rates("new_rates", new_rates)
    for argument, found in (("rates", old), ("new_rates", new)):
        if not found.any():
            raise ValueError(
                f"{argument} must hold a rate above 0, got {found.size} rates that add up to 0: "
                "no decay acts in such a run. Pass the rate of every accepted update."
            )
    target = _log_factor(old, _at_least_zero("decay", decay))
    return _root(new, target) if target else 0.0


def _root(rates: Rates, target: float) -> float:
    """The decay at which the log of the factor is `target`, which is below 0."""
    # the log falls ever faster with the decay, so its tangent at 0 meets the target too late,
    # and from there Newton's method comes down to the root without ever passing it
    decay, largest = -target / math.fsum(rates), float(rates.max())
    if largest * decay >= 1:
        decay = _below_one_over(largest)
        if _log_factor(rates, decay) > target:
            raise ValueError(
                f"new_rates must be able to shrink a weight to {math.exp(target):.3g}, got "
                f"{rates.size} rates up to {largest:.3g}: a decay that does so would erase the "
                "weight in one update. Use more updates, or more even rates."
            )
    while True:
        slope = math.fsum(rates / (1 - rates * decay))
        step = (target - _log_factor(rates, decay)) / slope
        decay -= max(step, 0.0)
        if step <= 1e-15 * decay:
            return decay


def _below_one_over(rate: float) -> float:
    """The largest decay that leaves something of a weight in an update at `rate`."""
    decay = 1 / rate
    while rate * decay >= 1:
        decay = math.nextafter(decay, 0)
    return decay


def _log_factor(rates: Rates, decay: float) -> float:
    terms = rates * decay
    if terms.size and terms.max() >= 1:
        index = int(terms.argmax())
        raise ValueError(
            f"decay must stay below 1 / {rates[index]:.3g}, the largest rate, got {decay:.3g}: "
            f"update {index} would erase the weight or turn its sign. Use a smaller decay, or "
            "smaller rates."
        )
    return math.fsum(np.log1p(-terms))


def _rates(argument: str, rates: Any) -> Rates:
    if isinstance(rates, (str, bytes, dict)) or not isinstance(rates, Iterable):
        raise TypeError(
            f"{argument} must be an iterable of learning rates, got {rates!r:.60} of type "
            f"{type(rates).__name__}. For a constant rate pass [rate] * updates."
        )
    return np.array(
        [_at_least_zero(f"{argument}[{index}]", rate) for index, rate in enumerate(rates)],
        dtype=np.float64,
    )


def _at_least_zero(argument: str, value: SupportsFloat) -> float:
    found = number(argument, value)
    if not 0 <= found < math.inf:
        raise ValueError(
            f"{argument} must be finite and at least 0, got {found}. Read it from the optimizer: "
            "group['lr'] or group['weight_decay']."
        )
    return found
