"""Batches: an order that seed and epoch decide, a cursor that continues, refusals."""

import itertools
import random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from gradstep import Batches, windows


def epochs(batches: Batches, count: int) -> list[list[int]]:
    """The samples of each batch, in the order handed out."""
    return [batch.tolist() for _ in range(count) for batch in batches]


@given(
    samples=st.integers(1, 20),
    batch_size=st.integers(1, 25),
    seed=st.none() | st.integers(0, 2**64),
    consumed=st.integers(0, 40),
)
def test_batches_continue_anywhere_as_if_never_stopped(
    samples: int, batch_size: int, seed: int | None, consumed: int
) -> None:
    def build() -> Batches:
        return Batches(torch.arange(samples), batch_size, seed=seed)

    first, second = build(), build()
    whole = epochs(build(), 42)
    stream = (batch.tolist() for _ in range(42) for batch in first)
    assert [next(stream) for _ in range(consumed)] == whole[:consumed]
    second.load_state_dict(first.state_dict())
    rest = epochs(second, 42 - second.epoch)
    assert rest == whole[consumed:]
    assert second.epoch == 42


@given(samples=st.integers(1, 30), batch_size=st.integers(1, 40), seed=st.none() | st.just(5))
def test_an_epoch_holds_every_sample_once_and_keeps_the_tail(
    samples: int, batch_size: int, seed: int | None
) -> None:
    batches = Batches(torch.arange(samples), batch_size, seed=seed)
    epoch = [batch.tolist() for batch in batches]
    assert sorted(itertools.chain(*epoch)) == list(range(samples))
    assert len(epoch) == len(batches)
    assert {len(batch) for batch in epoch[:-1]} <= {batch_size}
    assert len(epoch[-1]) == (samples - 1) % batch_size + 1


def test_the_order_is_a_function_of_seed_and_epoch() -> None:
    orders = {
        (seed, epoch): tuple(order)
        for seed in range(3)
        for epoch, order in enumerate(epochs(Batches(torch.arange(50), 50, seed=seed), 3))
    }
    assert len(set(orders.values())) == 9  # no seed repeats another one's later epoch
    assert orders[1, 1] == tuple(epochs(Batches(torch.arange(50), 50, seed=1), 2)[1])
    assert epochs(Batches(torch.arange(50), 50, seed=None), 2) == [list(range(50))] * 2


def test_batches_leave_the_generators_of_the_process_alone() -> None:
    def states() -> tuple[Any, ...]:
        return random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()

    before = states()
    list(Batches((torch.arange(9), torch.arange(9)), 2, seed=3))
    assert states() == before


def test_a_window_consumes_its_microbatches_and_not_one_more() -> None:
    batches = Batches(torch.arange(10), 2, seed=None)
    cursors = [batches.state_dict()["batch"] for _ in windows(batches, 2)]
    assert cursors == [2, 4, 0]
    assert batches.epoch == 1


def test_an_iteration_that_was_left_is_continued_by_the_next() -> None:
    batches = Batches(torch.arange(6), 2, seed=None)
    left = iter(batches)
    assert next(left).tolist() == [0, 1]
    assert epochs(batches, 1) == [[2, 3], [4, 5]]
    assert list(left) == []  # its epoch is over


class Squares:
    """A data set of dicts, by integer index only."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> dict[str, Any]:
        assert isinstance(index, int)
        return {"root": torch.tensor(index), "square": index * index}


def test_data_can_be_a_tensor_a_tuple_of_tensors_or_a_data_set() -> None:
    (tensor,) = Batches(torch.eye(3), 3, seed=1)
    assert isinstance(tensor, Tensor)
    inputs, targets = next(iter(Batches((torch.eye(3), torch.arange(3)), 3, seed=1)))
    assert torch.equal(inputs, torch.eye(3)[targets])
    assert torch.equal(inputs, tensor)
    samples = next(iter(Batches(Squares(), 4, seed=1)))
    assert torch.equal(samples["square"], samples["root"] ** 2)
    assert samples["root"].shape == (4,)
    ragged = Batches([[1], [2, 3], []], 3, seed=None, collate_fn=lambda rows: rows)
    assert list(ragged) == [[[1], [2, 3], []]]


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (iter([1]), TypeError, r"data must have a length, got list_iterator: .* Pass tensors, or"),
        (torch.tensor(1), TypeError, r"data must have a length, got Tensor"),
        ((torch.ones(2), torch.ones(3)), ValueError, r"of one length, got \[2, 3\]\. Their first"),
        (torch.ones(0, 2), ValueError, r"data must hold at least one sample, got none"),
        ([], ValueError, r"data must hold at least one sample, got none"),
        ((), ValueError, r"data must hold at least one sample, got none"),
    ],
)
def test_data_without_samples_is_refused(data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Batches(data, 1, seed=0)


@pytest.mark.parametrize("name", ["batch_size", "seed"])
def test_sizes_and_seeds_that_are_no_counts_are_refused(name: str) -> None:
    for wrong in (2.0, "2", True):
        with pytest.raises(TypeError, match=rf"{name} must be an integer, got {wrong!r} of type"):
            Batches(torch.ones(3), **{"batch_size": 1, "seed": 0, name: wrong})
    least = {"batch_size": 1, "seed": 0}[name]
    with pytest.raises(ValueError, match=rf"{name} must be at least {least}, got {least - 1}"):
        Batches(torch.ones(3), **{"batch_size": 1, "seed": 0, name: least - 1})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"samples": 11}, r"cursor of other data: its samples is 11, here it is 10\. Build"),
        ({"batch_size": 3}, r"other data: its batch_size is 3, here it is 4\."),
        ({"seed": None}, r"other data: its seed is None, here it is 0\."),
        ({"batch": 3}, r"batch of state_dict must be below 3, got 3\."),
        ({"batch": -1}, r"batch of state_dict must be at least 0, got -1\."),
        ({"epoch": -1}, r"epoch of state_dict must be at least 0, got -1\."),
        ({"sampler": 1}, r"state_dict must hold epoch, batch, .*, got epoch, .*sampler\. Pass"),
    ],
)
def test_a_cursor_of_other_data_is_refused_and_nothing_changes(
    change: dict[str, Any], message: str
) -> None:
    batches = Batches(torch.arange(10), 4, seed=0)
    next(iter(batches))
    before = batches.state_dict()
    with pytest.raises(ValueError, match=message):
        batches.load_state_dict({**before, **change})
    with pytest.raises(ValueError, match=r"got nothing\. Pass what state_dict\(\) returned"):
        batches.load_state_dict({})
    with pytest.raises(TypeError, match=r"state_dict must be a dict, got None of type NoneType\."):
        batches.load_state_dict(None)
    assert batches.state_dict() == before


@pytest.mark.parametrize(
    "data",
    [
        [torch.zeros(100, 8), torch.zeros(100, 8)],
        (np.zeros((100, 8)), np.zeros(100)),
        {"inputs": torch.zeros(100, 8), "targets": torch.zeros(100)},
    ],
    ids=["list of tensors", "tuple of arrays", "dict"],
)
def test_columns_in_another_form_are_refused_with_the_cure(data: Any) -> None:
    message = r"got a (list|tuple|dict) of 2 columns\. Pass a tuple of tensors"
    with pytest.raises(TypeError, match=message):
        Batches(data, 10, seed=0)
