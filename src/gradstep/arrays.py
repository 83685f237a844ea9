"""Clipping for lists of NumPy arrays, with the contract of the torch functions."""

import itertools
from collections.abc import Iterable
from typing import Any, SupportsFloat

import numpy as np

from ._arguments import Nonfinite, NonfiniteGradientError, at_least_zero, nonfinite_policy
from ._norms import Array, Precision, clip_target, contiguous_blocks, measure, steps

__all__ = ["clip_grad_norm"]

FLOATING = "efdFD"  # NumPy's letters for float16, 32, 64 and complex64, 128


def clip_grad_norm(
    grads: Iterable[Array], max_norm: SupportsFloat, *, nonfinite: Nonfinite = "raise"
) -> float:
    """Scale all arrays in place by one factor, so that their joint L2 norm is at most `max_norm`.

    The contract is that of [`clip_grad_norm_`][gradstep.clip_grad_norm_]: the norm is right
    for every finite entry, nothing is written at or below `max_norm`, afterwards the norm
    is at most `max_norm` as stored, and a second call changes nothing.

    Args:
        grads: Arrays of any shapes, or one of them; float16, float32, float64, complex64 or
            complex128, in any layout. An array that is listed twice counts once.
        max_norm: The largest norm allowed, at least 0; `float("inf")` only measures.
        nonfinite: What happens where an entry is NaN or infinite. `"raise"`: an error that
            names the array. `"leave"`: every array stays as it is, and the returned norm,
            NaN or infinite, reports it.

    Returns:
        The norm before clipping.

    Raises:
        TypeError: An element is no array, or its dtype is not listed above.
        ValueError: `max_norm` is negative or NaN, or an array is read-only.
        NonfiniteGradientError: The policy is `"raise"` and an entry is NaN or infinite.

    Examples:
        >>> import numpy as np
        >>> from gradstep.arrays import clip_grad_norm
        >>> grads = [np.array([3.0]), np.array([[4.0, 0.0]])]
        >>> clip_grad_norm(grads, max_norm=1.0)
        5.0
        >>> [g.round(6).tolist() for g in grads]
        [[0.6], [[0.8, 0.0]]]

    Source:
        Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural
        networks", 2013, algorithm 1 (arXiv 1211.5063).
    """
    bound = at_least_zero("max_norm", max_norm)
    policy = nonfinite_policy(nonfinite)
    arrays = _checked(grads)
    real = _real(arrays)
    norm = measure(lambda: contiguous_blocks(real), 2)
    if not norm.finite:
        if policy == "raise":
            raise _nonfinite_error(arrays)
    elif norm.value > bound:
        precision = Precision.coarsest(np.finfo(dtype) for dtype in {a.dtype for a in arrays})
        target = clip_target(bound, 2, norm.entries, precision)
        for step in steps(target / norm.scale / norm.ratio):
            for array in arrays:
                _scale(array, step)
    return norm.value


def _checked(grads: object) -> list[Array]:
    if not isinstance(grads, Iterable):
        raise TypeError(
            f"grads must be a list of arrays, got {grads!r} of type {type(grads).__name__}."
        )
    arrays: list[Any] = [grads] if isinstance(grads, np.ndarray) else list(grads)
    for index, array in enumerate(arrays):
        if isinstance(array, np.ma.MaskedArray):
            raise TypeError(
                f"grads must hold arrays without a mask, got one with at index {index}. Pass "
                "array.filled(0): what is masked does not count."
            )
        if not isinstance(array, np.ndarray):
            raise TypeError(
                f"grads must hold NumPy arrays, got {array!r:.60} of type {type(array).__name__} "
                f"at index {index}. Use np.asarray, and keep the result: it is changed in place."
            )
        if array.dtype.char not in FLOATING:
            raise TypeError(
                "grads must hold float16, float32, float64 or complex arrays, got dtype "
                f"{array.dtype} at index {index}. Convert it, say with array.astype(np.float32)."
            )
        if not array.flags.writeable:
            raise ValueError(
                f"grads must be writable, the array at index {index} is read-only. Pass a copy."
            )
    # a subclass is read and written as the array below it: np.matrix has no other shape than 2-D
    return [np.asarray(array) for array in {id(array): array for array in arrays}.values()]


def _real(arrays: list[Array]) -> list[Array]:
    """Real arrays with the same entries: of a complex one both parts."""
    if not any(array.dtype.kind == "c" for array in arrays):
        return arrays
    parts = ((a.real, a.imag) if a.dtype.kind == "c" else (a,) for a in arrays)
    return list(itertools.chain.from_iterable(parts))


def _scale(array: Array, factor: float) -> None:
    places = array
    if not array.flags.c_contiguous:
        # an expanded dimension has stride 0: all of it is one place in memory
        places = array[(*(slice(0, 1 if stride == 0 else None) for stride in array.strides), ...)]
    if array.dtype.itemsize == 2:
        # in float16 the factor itself would lose its digits: multiply in float32, round once
        np.multiply(places, factor, out=places, dtype=np.float32, casting="same_kind")
    else:
        places *= factor


def _nonfinite_error(arrays: list[Array]) -> NonfiniteGradientError:
    for index, array in enumerate(arrays):
        wrong = array[~np.isfinite(array)]
        if wrong.size:
            return NonfiniteGradientError(
                f"the array at index {index} is not finite: {wrong.size} of {array.size} entries, "
                f"the first is {wrong[0]}. No array was changed. Look at the loss and the data of "
                "this window; or pass nonfinite='leave' and skip the update when the returned "
                "norm is not finite."
            )
    raise AssertionError("the norm says nonfinite, every entry is finite")
