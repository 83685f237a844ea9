"""`updates`: the denominator, the order, the clocks, and what an error leaves behind."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.optim.lr_scheduler import ReduceLROnPlateau, StepLR

import gradstep
from gradstep import Additive, Clocks, CrossEntropy, MeanSquaredError, Update, updates

from .loops import (
    FAILURES,
    INF,
    Exploding,
    as_one,
    assert_equal,
    batches_of,
    broken,
    small_model,
    snapshot,
)


def test_windows_of_unequal_batches_equal_full_batches() -> None:
    batches = batches_of([3, 2, 4, 1, 2])
    model, reference = small_model().double(), small_model().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = StepLR(optimizer, 1, 0.9)
    records = list(updates(model, batches, optimizer, scheduler, accumulation_steps=3))

    other = torch.optim.SGD(reference.parameters(), lr=0.1)
    other_scheduler = StepLR(other, 1, 0.9)
    for window, record in zip((batches[:3], batches[3:]), records, strict=True):
        inputs, targets = as_one(window)
        other.zero_grad()
        loss = functional.cross_entropy(reference(inputs), targets)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(reference.parameters(), 1.0).item()
        other.step()
        other_scheduler.step()
        assert record.mean_loss == pytest.approx(loss.item(), rel=1e-12)
        assert record.pre_clip_norm == pytest.approx(norm, rel=1e-12)
        assert record.clip_coefficient == min(1.0, 1.0 / record.pre_clip_norm)
    assert [r.microbatches for r in records] == [3, 2]
    assert [r.targets for r in records] == [6, 2]
    assert [r.learning_rate for r in records] == [0.1, 0.1 * 0.9]
    assert all(r.accepted for r in records)
    assert scheduler.last_epoch == other_scheduler.last_epoch == 2
    start = small_model().double()
    for mine, theirs, before in zip(
        model.parameters(), reference.parameters(), start.parameters(), strict=True
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-14)
        assert not torch.equal(mine, before)
        assert mine.grad is None


def test_mean_of_means_is_another_update() -> None:
    batches = batches_of([3, 2, 4])
    model, wrong = small_model().double(), small_model().double()
    list(updates(model, batches, torch.optim.SGD(model.parameters(), 1.0), accumulation_steps=3))
    for inputs, targets in batches:
        (functional.cross_entropy(wrong(inputs), targets) / 3).backward()
    torch.optim.SGD(wrong.parameters(), 1.0).step()
    difference = max(
        (a - b).abs().max().item()
        for a, b in zip(model.parameters(), wrong.parameters(), strict=True)
    )
    assert difference > 1e-3


@pytest.mark.parametrize("k", [1, 2, 5, 100])
def test_update_does_not_depend_on_the_split(k: int) -> None:
    inputs, targets = as_one(batches_of([10]))
    pieces = list(zip(inputs.split(2), targets.split(2), strict=True))
    model, whole = small_model().double(), small_model().double()
    adamw = [torch.optim.AdamW(m.parameters(), 0.01, weight_decay=0.1) for m in (model, whole)]
    run = updates(model, pieces, adamw[0], accumulation_steps=5, max_norm=0.05)
    first = next(run)
    (full,) = updates(whole, [(inputs, targets)], adamw[1], accumulation_steps=k, max_norm=0.05)
    assert full.clip_coefficient < 1
    assert first.mean_loss == pytest.approx(full.mean_loss, rel=1e-12)
    for mine, theirs in zip(model.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-14)


def test_objectives_of_every_kind_are_taken() -> None:
    rows = torch.randn(6, 4)
    targets = {"mse": torch.randn(6, 3), "weighted": torch.tensor([0, 1, 2, -100, 1, 1])}
    objectives = {
        "mse": MeanSquaredError(),
        "weighted": CrossEntropy(weight=torch.tensor([1.0, 2.0, 4.0])),
    }
    denominators = {"mse": 18, "weighted": 11.0}
    for name, objective in objectives.items():
        model = small_model()
        batches = list(zip(rows.split(4), targets[name].split(4), strict=True))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        (record,) = updates(model, batches, optimizer, accumulation_steps=2, objective=objective)
        assert record.targets == denominators[name]
    own = Additive(lambda model, x: model(x).abs().sum(), lambda x: x.numel())
    (record,) = updates(
        small := small_model(),
        [rows],
        torch.optim.SGD(small.parameters(), 0.1),
        accumulation_steps=2,
        objective=own,
    )
    assert record.targets == 24


def test_generator_is_lazy_and_stops_at_a_boundary() -> None:
    model = small_model().double()
    source = iter(batches_of([2] * 6))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    run = updates(model, source, optimizer, accumulation_steps=2)
    before = snapshot(model)
    assert_equal(snapshot(model), before)  # nothing until it is asked
    next(run)
    assert len(list(source)) == 4  # it took exactly its window
    assert all(p.grad is None for p in model.parameters())
    run.close()
    assert all(p.grad is None for p in model.parameters())


def test_max_norm_infinity_only_measures() -> None:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    batches = [(1e3 * x, y) for x, y in batches_of([4], torch.float32)]
    (record,) = updates(model, batches, optimizer, accumulation_steps=1, max_norm=INF)
    assert record.clip_coefficient == 1
    assert record.pre_clip_norm > 1


def test_gradients_left_by_others_do_not_count() -> None:
    clean, soiled = small_model(), small_model()
    for parameter in soiled.parameters():
        parameter.grad = torch.full_like(parameter, math.nan)
    for model in (clean, soiled):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        list(updates(model, batches_of([4], torch.float32), optimizer, accumulation_steps=1))
    assert_equal(snapshot(clean), snapshot(soiled))


def test_clocks_count_each_thing_once() -> None:
    clocks = Clocks()
    for accepted in (True, False, True):
        clocks.count(Update(0, 3, 10, 1.0, 1.0, 1.0, 0.1, accepted))
    assert clocks == Clocks(microbatches=9, attempted=3, accepted=2, skipped=1, targets=20)
    restored = Clocks()
    restored.load_state_dict(clocks.state_dict())
    assert restored == clocks


@pytest.mark.parametrize(
    "state", [{}, {"microbatches": 7}, {**Clocks().state_dict(), "targets": None}, None]
)
def test_clocks_refuse_the_state_of_something_else(state: Any) -> None:
    clocks = Clocks(microbatches=3)
    with pytest.raises(ValueError, match=r"state must hold numbers .* Pass what state_dict"):
        clocks.load_state_dict(state)
    assert clocks == Clocks(microbatches=3)


# what an error leaves behind


def test_loss_that_is_no_sum_is_refused() -> None:
    def each_row(model: Any, microbatch: Any) -> Tensor:
        inputs, targets = microbatch
        return functional.cross_entropy(model(inputs), targets, reduction="none")

    objective = gradstep.Additive(each_row, lambda microbatch: len(microbatch[1]))
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    batches = batches_of([3, 3], torch.float32)
    run = updates(model, batches, optimizer, accumulation_steps=2, objective=objective)
    with pytest.raises(ValueError, match=r"loss of shape \(\d+,\)\. Add up .*\n.*window 0"):
        next(run)


def test_gradient_is_that_of_the_divided_loss_bit_for_bit() -> None:
    model = small_model()
    batches = batches_of([3, 5, 2], torch.float32)
    count = sum(int((targets != -100).sum()) for _, targets in batches)
    for inputs, targets in batches:
        (functional.cross_entropy(model(inputs), targets, reduction="sum") / count).backward()
    expected = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    seen: list[Tensor | None] = []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    optimizer.register_step_pre_hook(
        lambda *_: seen.extend(parameter.grad for parameter in model.parameters())
    )
    [update] = updates(model, batches, optimizer, accumulation_steps=3, max_norm=INF)
    assert update.targets == count
    assert count & (count - 1)  # no power of two: the division rounds
    assert all(map(torch.equal, seen, expected))
    assert len(seen) == len(expected)


@pytest.mark.parametrize("kind", FAILURES)
def test_error_leaves_everything_as_before_its_window(kind: str) -> None:
    error, message = FAILURES[kind]
    model = small_model()
    model.insert(1, Exploding())
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    scheduler = StepLR(optimizer, 1, 0.5)
    run = updates(model, broken(kind), optimizer, scheduler, accumulation_steps=2)
    next(run)
    before = snapshot(model, optimizer, scheduler)
    with pytest.raises(error, match=message):
        next(run)
    assert_equal(snapshot(model, optimizer, scheduler), before)
    assert before[2]["state"]  # it had stepped
    assert all(p.grad is None for p in model.parameters())


def test_a_model_without_trainable_parameters_is_named_as_such() -> None:
    model, other = small_model(), small_model()
    optimizer = torch.optim.SGD(other.parameters(), 0.1)
    with pytest.raises(RuntimeError, match=r"no parameter .* received a gradient.*requires_grad"):
        list(updates(model, batches_of([2], torch.float32), optimizer, accumulation_steps=1))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"accumulation_steps": 0}, ValueError, r"accumulation_steps must be at least 1, got 0"),
        (
            {"accumulation_steps": 1.5},
            TypeError,
            r"accumulation_steps must be an integer, got 1\.5",
        ),
        ({"max_norm": -1.0}, ValueError, r"max_norm must be at least 0, got -1\.0"),
        ({"max_norm": None}, TypeError, r"max_norm must be a number, got None"),
        ({"objective": torch.nn.MSELoss()}, TypeError, r"objective .* denominator, got MSELoss\."),
        ({"scaler": True}, TypeError, r"scaler must be a torch\.amp\.GradScaler, got True"),
        ({"autocast": "bf16"}, TypeError, r"autocast must be a torch\.dtype, got 'bf16'"),
        ({"tails": "drop"}, ValueError, r"tails must be 'raise' or 'empty', got 'drop'"),
    ],
)
def test_wrong_options_are_refused_before_the_first_window(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with pytest.raises(error, match=message):
        updates(model, [], optimizer, **{"accumulation_steps": 1, **options})


def test_something_else_than_a_model_or_an_optimizer_is_refused_at_once() -> None:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with pytest.raises(TypeError, match=r"model must be a torch\.nn\.Module, got None"):
        updates(None, [], optimizer, accumulation_steps=1)
    with pytest.raises(TypeError, match=r"optimizer must be a torch\.optim\.Optimizer, got None"):
        updates(model, [], None, accumulation_steps=1)
    with pytest.raises(TypeError, match=r"must be iterable, got 3 of type int"):
        updates(model, 3, optimizer, accumulation_steps=1)


def test_a_scheduler_that_needs_a_metric_is_refused() -> None:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    plateau: Any = ReduceLROnPlateau(optimizer)
    with pytest.raises(TypeError, match="ReduceLROnPlateau, which needs a metric"):
        updates(model, [], optimizer, plateau, accumulation_steps=1)
