"""`windows` and `count_targets`."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradstep import count_targets, windows


@given(st.lists(st.integers()), st.integers(1, 12))
def test_windows_hold_every_item_once_and_only_the_tail_is_short(items: list[int], k: int) -> None:
    grouped = list(windows(items, k))
    assert list(itertools.chain(*grouped)) == items
    assert len(grouped) == -(-len(items) // k)  # ceil: no empty window, no lost tail
    assert all(len(window) == k for window in grouped[:-1])


def test_windows_take_nothing_beyond_the_one_asked_for() -> None:
    source = iter(range(10))
    grouped = windows(source, 4)
    assert next(grouped) == [0, 1, 2, 3]
    assert next(source) == 4  # not yet taken
    assert list(grouped) == [[5, 6, 7, 8], [9]]


def test_windows_of_something_endless_are_endless() -> None:
    assert list(itertools.islice(windows(itertools.count(), np.int64(2)), 2)) == [[0, 1], [2, 3]]


@pytest.mark.parametrize("k", [0, -1])
def test_windows_below_one_are_refused_at_once(k: int) -> None:
    with pytest.raises(ValueError, match=rf"k must be at least 1, got {k}\."):
        windows([], k)


@pytest.mark.parametrize("k", [2.0, "2", None, True])
def test_windows_of_no_integer_length_are_refused_at_once(k: Any) -> None:
    with pytest.raises(TypeError, match=rf"k must be an integer, got {k!r} of type"):
        windows([], k)


def test_windows_of_something_that_cannot_be_iterated_are_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"must be iterable, got 3 of type int\. Pass"):
        windows(3, 2)  # type: ignore[call-overload]


def test_count_targets_leaves_out_the_ignored() -> None:
    targets = torch.tensor([[0, 1, -100], [2, 0, -100]])
    assert count_targets(targets) == 4
    assert count_targets(targets, ignore_index=0) == 4
    assert count_targets(torch.full((3,), -100)) == 0
    assert type(count_targets(targets)) is int


def test_count_targets_refuses_what_has_no_targets() -> None:
    with pytest.raises(TypeError, match=r"targets must be a tensor, got \[1\] of type list\. Use"):
        count_targets([1])
    with pytest.raises(TypeError, match=r"ignore_index must be an integer, got 'x' of type str"):
        count_targets(torch.ones(2), ignore_index="x")
