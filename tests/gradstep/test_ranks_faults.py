"""A rank fails, is killed, comes late or leaves: every other one ends with a clear error."""

import os
import re
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from gradstep import Additive, CrossEntropy, updates

from .ranks import Outcome, run_ranks
from .test_ranks import batches_of, small_model, wrap

HOW = ["ddp", "fsdp2", "tensor"]
PLACES = ["data", "count", "forward", "last forward", "backward", "last backward"]


class UserError(Exception):
    """A bug of a user's program."""


class FailingBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, act: Any) -> Tensor:
        ctx.act = act
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        ctx.act()
        return grad, None


def act(kind: str) -> None:
    if kind == "raise":
        raise UserError("row 17 is broken")
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(4)  # longer than the time limit of the group


def local(parameter: Any) -> Tensor:
    """What this rank holds of it; no collective, where a rank may be gone."""
    return (parameter.to_local() if hasattr(parameter, "to_local") else parameter).detach()


def faulty(rank: int, how: str, culprit: int, kind: str, place: str) -> Any:
    """Four microbatches in windows of two; in the second window the culprit fails."""
    share = 0 if how == "tensor" else rank
    place = place if rank == culprit else "nowhere"
    calls = {"count": 0, "forward": 0}

    def source() -> Iterator[tuple[Tensor, Tensor]]:
        for number, batch in enumerate(batches_of([5, 3, 2, 7], share)):
            if place == "data" and number == 3:
                act(kind)
            yield batch

    def count(batch: Any) -> Tensor:
        calls["count"] += 1
        if place == "count" and calls["count"] == 4:
            act(kind)
        return CrossEntropy().denominator(batch)

    def loss_sum(model: Any, batch: Any) -> Tensor:
        calls["forward"] += 1
        here = {3: "", 4: "last "}.get(calls["forward"], "not yet ")
        if place == here + "forward":
            act(kind)
        loss = CrossEntropy()(model, batch)
        return (
            FailingBackward.apply(loss, lambda: act(kind)) if place == here + "backward" else loss
        )

    model = wrap(small_model(), how)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = updates(
        model, source(), optimizer, accumulation_steps=2, objective=Additive(loss_sum, count)
    )
    next(run)
    before = [local(p).clone() for p in model.parameters()]
    try:
        next(run)
    finally:
        assert all(p.grad is None for p in model.parameters())
        after = map(local, model.parameters())
        assert all(torch.equal(p, b) for p, b in zip(after, before, strict=True))


def survivors(outcomes: list[Outcome], culprit: int) -> Iterator[Outcome]:
    assert all(outcome.exitcode is not None for outcome in outcomes), "a rank still ran"
    for rank, outcome in enumerate(outcomes):
        if rank != culprit:
            assert outcome.seconds < 20
            yield outcome


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("place", PLACES)
def test_a_rank_that_raises_stops_the_others_at_once(how: str, place: str) -> None:
    outcomes = run_ranks(2, faulty, how, 1, "raise", place)
    assert isinstance(outcomes[1].error, UserError)
    for outcome in survivors(outcomes, 1):
        assert isinstance(outcome.error, RuntimeError)
        assert "rank 1 failed in window 1 with UserError: row 17 is broken" in str(outcome.error)
        assert outcome.seconds < 3  # it did not wait for a time limit


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("place", ["data", "last backward"])
@pytest.mark.parametrize("culprit", [0, 1])
def test_a_killed_rank_is_named(how: str, place: str, culprit: int) -> None:
    outcomes = run_ranks(2, faulty, how, culprit, "kill", place)
    assert outcomes[culprit].exitcode == -signal.SIGKILL
    for outcome in survivors(outcomes, culprit):
        assert f"no sign of life from rank {culprit} within 2 s: killed" in str(outcome.error)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("place", ["data", "last backward"])
def test_a_rank_later_than_the_time_limit_stops_all(how: str, place: str) -> None:
    outcomes = run_ranks(2, faulty, how, 1, "sleep", place, limit=1.5)
    assert "rank 1" in str(outcomes[0].error)
    assert "the time limit of the process group, 1.5 s" in str(outcomes[0].error)
    assert "one came later than" in str(outcomes[1].error)
    assert outcomes[1].seconds < 20


def test_the_rank_that_holds_the_store_may_be_killed() -> None:
    outcomes = run_ranks(2, faulty, "ddp", 0, "kill", "last backward", store="tcp")
    for outcome in survivors(outcomes, 0):
        assert "no sign of life from rank 0" in str(outcome.error)


def test_four_ranks_name_the_one_that_was_killed() -> None:
    outcomes = run_ranks(4, faulty, "ddp", 2, "kill", "last backward")
    errors = [str(outcome.error) for outcome in survivors(outcomes, 2)]
    # a rank that does not talk to the killed one waits for those that do, and is silent as long
    assert all(re.search("no sign of life from ranks? (0, )?2 within", e) for e in errors)
    assert any("no sign of life from rank 2 within" in error for error in errors)


def lingering(rank: int, how: str, place: str) -> None:
    """After its exception the culprit does something else, instead of ending its process."""
    try:
        faulty(rank, how, 1, "raise", place)
    except UserError:
        time.sleep(2.5)
        raise


@pytest.mark.parametrize(
    ("how", "place", "limit"),
    [
        ("ddp", "data", 5.0),
        ("ddp", "last forward", 5.0),
        ("fsdp2", "count", 5.0),
        # in a collective of the model the others wait for the time limit
        ("ddp", "last backward", 1.5),
        ("fsdp2", "forward", 1.5),
        ("tensor", "forward", 1.5),
    ],
)
def test_a_rank_that_fails_and_lives_on_is_named(how: str, place: str, limit: float) -> None:
    outcomes = run_ranks(2, lingering, how, place, limit=limit)
    for outcome in survivors(outcomes, 1):
        assert "rank 1 failed in window 1 with UserError: row 17 is broken" in str(outcome.error)
        assert outcome.seconds < 2.5  # before the end of the other process


def absent(rank: int) -> None:
    model = wrap(small_model(), "ddp")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if rank == 1:
        return time.sleep(2.5)
    list(updates(model, batches_of([5], rank), optimizer, accumulation_steps=2))


def test_a_rank_that_never_calls_is_waited_for_until_the_time_limit() -> None:
    first, _ = run_ranks(2, absent, limit=1.5)
    assert "waited 1.5 s, the time limit of the process group" in str(first.error)
    assert "Every rank has to call updates() equally often" in str(first.error)


def leaving(rank: int) -> None:
    model = wrap(small_model(), "ddp")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for record in updates(model, batches_of([5] * 6, rank), optimizer, accumulation_steps=2):
        if rank == 1 and record.window == 1:
            break


def test_a_rank_that_leaves_the_loop_alone_stops_the_others() -> None:
    first, second = run_ranks(2, leaving)
    assert "rank 1 left the loop after window 1" in str(first.error)
    assert second.error is None


def failing_alike(rank: int, how: str) -> Any:
    """A bug on all ranks in the second microbatch; then the same run without it."""

    def loss_sum(model: Any, batch: Any) -> Tensor:
        loss = CrossEntropy()(model, batch)
        return FailingBackward.apply(loss, lambda: act("raise")) if batch is bad else loss

    model = wrap(small_model(), how)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = batches_of([5, 3, 4], rank)
    bad = batches[1]
    objective = Additive(loss_sum, CrossEntropy().denominator)
    with pytest.raises(UserError):
        list(updates(model, batches, optimizer, accumulation_steps=3, objective=objective))
    bad = ()
    (record,) = updates(model, batches, optimizer, accumulation_steps=3, objective=objective)
    return record.pre_clip_norm


@pytest.mark.parametrize("how", ["ddp", "fsdp2"])
def test_nothing_of_a_failed_window_is_left_in_the_next(how: str) -> None:
    model = small_model()
    pairs = [pair for rank in range(2) for pair in batches_of([5, 3, 4], rank)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (expected,) = updates(model, pairs, optimizer, accumulation_steps=6)
    for outcome in run_ranks(2, failing_alike, how):
        assert outcome.get() == pytest.approx(expected.pre_clip_norm, rel=1e-12)
