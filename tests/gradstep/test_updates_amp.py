"""`updates` with automatic mixed precision, really run on the CPU."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.optim.lr_scheduler import LRScheduler, StepLR

import gradstep
from gradstep import Additive, Update, updates

from .loops import (
    FAILURES,
    Batches,
    Exploding,
    assert_equal,
    batches_of,
    broken,
    small_model,
    snapshot,
)


def amp_run(
    batches: Batches, scale: float
) -> tuple[torch.nn.Module, torch.amp.GradScaler, LRScheduler, Iterator[Update]]:
    model = small_model()
    model.insert(1, Exploding())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scheduler = StepLR(optimizer, 1, 0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    run = updates(
        model,
        batches,
        optimizer,
        scheduler,
        accumulation_steps=2,
        scaler=scaler,
        autocast=torch.float16,
    )
    return model, scaler, scheduler, run


def test_float16_run_follows_the_float32_run() -> None:
    batches = batches_of([3, 2, 4, 3], torch.float32)
    model, scaler, scheduler, run = amp_run(batches, scale=1024.0)
    plain = small_model()
    optimizer = torch.optim.SGD(plain.parameters(), 0.1)
    expected = list(
        updates(plain, batches, optimizer, StepLR(optimizer, 1, 0.5), accumulation_steps=2)
    )
    for record, reference in zip(run, expected, strict=True):
        # float16 has three digits, and entries cancel; a scale left in would be off by 1024
        assert record.pre_clip_norm == pytest.approx(reference.pre_clip_norm, rel=5e-2)
        assert record.mean_loss == pytest.approx(reference.mean_loss, rel=1e-2)
        assert record.accepted
    assert scheduler.last_epoch == 2
    assert scaler.get_scale() == 1024
    for mine, other in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-2, atol=1e-3)


def test_an_overflow_skips_the_step_and_no_clock_but_its_own_advances() -> None:
    batches = batches_of([3] * 6, torch.float32)
    model, scaler, scheduler, run = amp_run(batches, scale=2.0**127)  # overflows at once
    before = snapshot(model)
    record = next(run)
    assert not record.accepted
    assert not math.isfinite(record.pre_clip_norm)
    assert math.isnan(record.clip_coefficient)
    assert math.isfinite(record.mean_loss)
    assert scaler.get_scale() == 2.0**126
    assert scheduler.last_epoch == 0
    assert_equal(snapshot(model), before)
    scaler.update(64.0)
    assert next(run).accepted
    assert scheduler.last_epoch == 1


def test_a_scale_that_skips_have_brought_to_zero_is_an_error() -> None:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**-148)
    objective = Additive(lambda model, x: (0 * model(x)).square().sum().sqrt(), len)  # 0 / 0
    run = updates(
        model,
        [torch.ones(1, 4)] * 9,
        optimizer,
        accumulation_steps=1,
        scaler=scaler,
        objective=objective,
    )
    assert [next(run).accepted, next(run).accepted] == [False, False]
    with pytest.raises(FloatingPointError, match=r"the loss scale is 0 in window 2: .*skipped"):
        next(run)
    assert scaler.get_scale() == 0
    assert all(p.grad is None for p in model.parameters())


def test_a_growing_scale_is_an_accepted_update() -> None:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0, growth_interval=1)
    run = updates(
        model,
        batches_of([3, 3], torch.float32),
        optimizer,
        accumulation_steps=1,
        scaler=scaler,
        autocast=torch.float16,
    )
    assert [record.accepted for record in run] == [True, True]
    assert scaler.get_scale() == 8


@pytest.mark.parametrize("kind", ["no target", "loss", "shape"])
def test_error_under_amp_leaves_the_scaler_as_before(kind: str) -> None:
    error, message = FAILURES[kind]
    model, scaler, scheduler, run = amp_run(broken(kind), scale=1024.0)
    next(run)
    before = snapshot(model, scaler, scheduler)
    with pytest.raises(error, match=message):
        next(run)
    assert_equal(snapshot(model, scaler, scheduler), before)


def test_error_after_unscaling_lets_the_next_window_unscale_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    options: dict[str, Any] = {"accumulation_steps": 1, "scaler": scaler}
    batches = batches_of([3], torch.float32)
    with monkeypatch.context() as patch:
        patch.setattr(gradstep.accumulation, "clip_grad_norm_", lambda *a, **k: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            list(updates(model, batches, optimizer, **options))
    (record,) = updates(model, batches, optimizer, **options)
    assert record.accepted


def test_error_of_the_step_is_named_and_lets_the_next_window_step() -> None:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    options: dict[str, Any] = {"accumulation_steps": 1, "scaler": scaler}
    handle = optimizer.register_step_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError, match=r"division by zero\n.*in window 0 of updates"):
        list(updates(model, batches_of([3], torch.float32), optimizer, **options))
    assert all(p.grad is None for p in model.parameters())
    handle.remove()
    (record,) = updates(model, batches_of([3], torch.float32), optimizer, **options)
    assert record.accepted


def test_a_disabled_scaler_is_no_scaler() -> None:
    model = small_model()
    model.insert(1, Exploding())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    run = updates(model, broken("gradient"), optimizer, accumulation_steps=2, scaler=scaler)
    next(run)
    with pytest.raises(FloatingPointError):
        next(run)


def test_bfloat16_needs_no_scaler() -> None:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    batches = batches_of([3, 3], torch.float32)
    records = list(
        updates(model, batches, optimizer, accumulation_steps=2, autocast=torch.bfloat16)
    )
    assert records[0].accepted
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA: not run here")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_cuda_amp_follows_the_cpu(dtype: torch.dtype) -> None:
    batches = batches_of([3, 2, 4, 3], torch.float32)
    runs = []
    for device in ("cpu", "cuda"):
        model = small_model().to(device)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        scaler = torch.amp.GradScaler(device, init_scale=1024.0, enabled=dtype == torch.float16)
        moved = [(x.to(device), y.to(device)) for x, y in batches]
        runs.append(
            list(
                updates(
                    model,
                    moved,
                    optimizer,
                    accumulation_steps=2,
                    scaler=scaler,
                    autocast=dtype,
                )
            )
        )
    for cpu, cuda in zip(*runs, strict=True):
        assert cuda.pre_clip_norm == pytest.approx(cpu.pre_clip_norm, rel=5e-2)
        assert cuda.accepted
