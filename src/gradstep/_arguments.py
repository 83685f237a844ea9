"""Checks of what a caller passes, with one way to say what is wrong."""

import math
import operator
from typing import Literal, SupportsFloat, SupportsIndex

Nonfinite = Literal["raise", "leave"]


class NonfiniteGradientError(FloatingPointError, RuntimeError):
    """A gradient holds NaN or infinity, so no positive factor can clip it.

    It is a `RuntimeError`, as torch raises with `error_if_nonfinite=True`, and a
    `FloatingPointError`. When it is raised, no gradient has been changed.
    """

    __module__ = "gradstep"  # the name that a reader of a traceback can import


def at_least_zero(argument: str, value: SupportsFloat) -> float:
    """`value` as a float, or an error that names `argument`."""
    bound = number(argument, value)
    if not bound >= 0:
        raise ValueError(
            f"{argument} must be at least 0, got {bound}: a negative threshold would turn every "
            "gradient around and NaN would erase it. Use a positive number, or float('inf') to "
            "clip nothing."
        )
    return bound


def divisor_from(divide_by: SupportsFloat) -> float:
    """A divisor that leaves finite gradients finite."""
    divisor = number("divide_by", divide_by)
    if not 1 <= divisor < math.inf:
        raise ValueError(
            f"divide_by must be a finite number of at least 1, got {divisor}: a smaller one could "
            "make finite gradients infinite. Multiply the loss before backward() instead; a window "
            "without targets has no mean."
        )
    return divisor


def norm_order(norm_type: SupportsFloat | str) -> float:
    """The order p of a p-norm; torch's spelling 'inf' is accepted."""
    order = math.inf if norm_type == "inf" else number("norm_type", norm_type)
    if not order > 0:
        raise ValueError(
            f"norm_type must be greater than 0, got {order}. Use 2.0 for the Euclidean norm or "
            "float('inf') for the largest entry."
        )
    return order


def nonfinite_policy(nonfinite: str, error_if_nonfinite: bool | None = None) -> Nonfinite:
    """The policy in force: torch's `error_if_nonfinite` decides when it is given."""
    if error_if_nonfinite is not None:
        return "raise" if error_if_nonfinite else "leave"
    if nonfinite not in ("raise", "leave"):
        raise ValueError(f"nonfinite must be 'raise' or 'leave', got {nonfinite!r}.")
    return nonfinite  # type: ignore[return-value]


def number(argument: str, value: SupportsFloat | str) -> float:
    """`value` as a float, where it is a number and not the name of one."""
    # float() would take "1.0" and True, which in a threshold are mistakes of a config file
    if not isinstance(value, (str, bytes, bool)):
        try:
            return float(value)
        except (TypeError, ValueError, RuntimeError, OverflowError):  # no number; too many
            pass
    raise TypeError(
        f"{argument} must be a number, got {value!r} of type {type(value).__name__}. "
        "Convert it where the setting is read."
    )


def integer_from(least: int | None, argument: str, value: SupportsIndex) -> int:
    """`value` as an integer, of at least `least` if given, or an error that names `argument`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(
            f"{argument} must be an integer, got {value!r} of type {type(value).__name__}. "
            "Convert it where the setting is read."
        )
    integer = operator.index(value)
    if least is not None and integer < least:
        raise ValueError(f"{argument} must be at least {least}, got {integer}.")
    return integer
