"""`gradstep.arrays.clip_grad_norm`: the same contract for NumPy lists."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

import gradstep
from gradstep.arrays import clip_grad_norm

from . import oracle


def arrays_of(tensors: list[Tensor]) -> list[np.ndarray]:
    """The tensors that NumPy has a dtype for."""
    arrays = [t.numpy().copy() for t in tensors if t.dtype is not torch.bfloat16]
    assume(arrays)
    return arrays


def square(arrays: list[np.ndarray]) -> Fraction:
    return oracle.square(torch.from_numpy(array) for array in arrays)


def test_three_four_is_clipped_in_place_to_three_fifths_and_four_fifths() -> None:
    grads = [np.array([3.0]), np.array([4.0, 0.0])]
    norm = clip_grad_norm(grads, 1.0)
    assert norm == 5.0
    assert type(norm) is float
    np.testing.assert_allclose(grads[0], [0.6])
    np.testing.assert_allclose(grads[1], [0.8, 0.0])


@given(oracle.gradients(), st.floats(1e-6, 0.999))
def test_arrays_meet_the_contract(tensors: list[Tensor], share: float) -> None:
    arrays = arrays_of(tensors)
    before = [array.copy() for array in arrays]
    norm = clip_grad_norm(arrays, math.inf)
    assert all(map(np.array_equal, arrays, before))
    expected = gradstep.global_norm([torch.from_numpy(array) for array in arrays]).item()
    assert norm == expected or math.isclose(norm, expected, rel_tol=1e-6)
    bound = norm * share
    assume(math.isfinite(bound))
    clip_grad_norm(arrays, bound)
    assert square(arrays) <= Fraction(bound) ** 2
    once = [array.copy() for array in arrays]
    clip_grad_norm(arrays, bound)
    assert all(map(np.array_equal, arrays, once))


def test_arrays_agree_with_torch() -> None:
    rng = np.random.default_rng(0)
    shapes = ((1,), (7, 300), (20_000,), (0, 3))
    grads = [rng.standard_normal(shape, np.float32) for shape in shapes]
    parameters = oracle.parameters_with(*(torch.tensor(grad) for grad in grads))
    expected = torch.nn.utils.clip_grad_norm_(parameters, 0.5).item()
    assert clip_grad_norm(grads, 0.5) == pytest.approx(expected, rel=1e-5)
    for grad, parameter in zip(grads, parameters, strict=True):
        assert grad.dtype == np.float32
        np.testing.assert_allclose(grad, parameter.grad.numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(60_000.0).reshape(200, 300).T,
        np.arange(60_000.0)[::-3],
        np.arange(60_000, dtype=">f4"),
        np.arange(60_000, dtype=np.float16)[::2],
        np.full((20, 30), 3 + 4j),
        np.full((200, 300), 3 - 4j, np.complex64).T,
        np.array(3.0),
    ],
    ids=["transposed", "reversed", "big-endian", "float16", "complex", "complex64", "0-d"],
)
def test_arrays_of_any_layout_are_scaled_in_place(array: np.ndarray) -> None:
    before = array.astype(np.complex128)
    expected = math.sqrt((np.abs(before) ** 2).sum())
    assert clip_grad_norm([array], 1.0) == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(array, before / expected, rtol=1e-3, atol=1e-7)


def test_expanded_and_repeated_arrays_are_scaled_once() -> None:
    expanded = np.lib.stride_tricks.as_strided(np.array([2.0]), (25,), (0,))
    single = np.array([3.0])
    norm = clip_grad_norm([expanded, single, single], 1.0)
    assert norm == pytest.approx(math.sqrt(25 * 4 + 9))
    np.testing.assert_allclose(expanded, 2 / norm)
    np.testing.assert_allclose(single, 3 / norm)


def test_nothing_and_zeros_have_norm_zero() -> None:
    zeros = [np.zeros(3), np.zeros((0, 2), np.float32)]
    for grads in ([], zeros, iter(zeros)):
        assert clip_grad_norm(grads, 1.0) == 0
    assert not np.isnan(zeros[0]).any()


def test_a_subclass_is_the_array_below_it() -> None:
    with pytest.warns(PendingDeprecationWarning, match="matrix subclass"):
        matrix = np.matrix([[3.0], [4.0]])
    assert clip_grad_norm([matrix, np.zeros(2)], 1.0) == 5
    assert isinstance(matrix, np.matrix)
    np.testing.assert_allclose(matrix, [[0.6], [0.8]])


def read_only() -> np.ndarray:
    array = np.ones(2)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (np.array([1, 2]), TypeError, r"float16, .* got dtype int64 at index 1\. Convert it"),
        (np.array([True]), TypeError, r"got dtype bool at index 1"),
        (np.array([1.0], object), TypeError, r"got dtype object at index 1"),
        (np.array([1.0], np.longdouble), TypeError, r"got dtype (longdouble|float\d+) at index 1"),
        (read_only(), ValueError, r"the array at index 1 is read-only\. Pass a copy"),
        ([1.0], TypeError, r"must hold NumPy arrays, got \[1\.0\] of type list at index 1"),
        (1.0, TypeError, r"got 1\.0 of type float at index 1"),
        (np.float32(1), TypeError, r"of type float32 at index 1"),
        (None, TypeError, r"got None of type NoneType at index 1"),
        (
            np.ma.array([1.0, 2.0], mask=[0, 1]),
            TypeError,
            r"a mask, got one with at index 1\. Pass",
        ),
        (torch.ones(2), TypeError, r"of type Tensor at index 1"),
        (np.array([1.0, math.nan]), FloatingPointError, r"array at index 1 is not finite: 1 of 2"),
        (np.array([-math.inf]), RuntimeError, r"index 1 is not finite: .* the first is -inf"),
    ],
)
def test_a_wrong_array_is_named_and_nothing_is_written(
    wrong: Any, error: type[Exception], message: str
) -> None:
    good = np.array([3.0, 4.0])
    with pytest.raises(error, match=message):
        clip_grad_norm([good, wrong], 1.0)
    assert good.tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("bound", "error", "message"),
    [
        (-1.0, ValueError, r"max_norm must be at least 0, got -1\.0"),
        (math.nan, ValueError, r"max_norm must be at least 0, got nan"),
        ("1", TypeError, r"max_norm must be a number, got '1' of type str"),
    ],
)
def test_a_wrong_bound_is_named_and_nothing_is_written(
    bound: Any, error: type[Exception], message: str
) -> None:
    good = np.array([3.0, 4.0])
    with pytest.raises(error, match=message):
        clip_grad_norm([good], bound)
    assert good.tolist() == [3.0, 4.0]


def test_left_arrays_are_reported_by_the_norm() -> None:
    grads = [np.array([3.0]), np.array([math.inf])]
    assert clip_grad_norm(grads, 1.0, nonfinite="leave") == math.inf
    assert [grad.tolist() for grad in grads] == [[3.0], [math.inf]]


def test_something_that_is_no_list_is_refused() -> None:
    with pytest.raises(TypeError, match=r"grads must be .* got 3\.0 of type float"):
        clip_grad_norm(3.0, 1.0)
