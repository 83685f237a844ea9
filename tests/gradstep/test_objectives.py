"""Objectives: sums over microbatches, divided once, are torch's mean of the whole batch."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from gradstep import Additive, CrossEntropy, MeanSquaredError, Objective

TARGETS = torch.tensor([0, 1, -100, 2, 0, -100, 1])
WEIGHT = torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64)


def model_and_rows() -> tuple[torch.nn.Module, Tensor]:
    torch.manual_seed(0)
    return torch.nn.Linear(4, 3).double(), torch.randn(7, 4, dtype=torch.float64)


def from_microbatches(objective: Objective, model: Any, pairs: list[tuple[Tensor, Tensor]]) -> Any:
    total = sum(float(objective.denominator(pair)) for pair in pairs)
    return sum(objective(model, pair) for pair in pairs) / total


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_in_parts_is_torchs_mean(weight: Tensor | None, smoothing: float) -> None:
    model, rows = model_and_rows()
    options: dict[str, Any] = {"weight": weight, "label_smoothing": smoothing}
    parts = list(zip(rows.split([2, 3, 2]), TARGETS.split([2, 3, 2]), strict=True))
    expected = functional.cross_entropy(model(rows), TARGETS, **options)
    together = from_microbatches(CrossEntropy(**options), model, parts)
    torch.testing.assert_close(together, expected, rtol=1e-12, atol=0)
    means = [functional.cross_entropy(model(x), y, **options) for x, y in parts]
    assert abs(sum(means) / 3 - expected) > 1e-3  # the mean of means is another number


def test_class_weights_need_the_weighted_denominator() -> None:
    model, rows = model_and_rows()
    weighted = CrossEntropy(weight=WEIGHT)
    assert weighted.denominator((rows, TARGETS)) == 1 + 2 + 5 + 1 + 2
    expected = functional.cross_entropy(model(rows), TARGETS, WEIGHT)
    assert abs(weighted(model, (rows, TARGETS)) / 5 - expected) > 0.1  # the raw count


def test_classes_may_come_last() -> None:
    logits, targets = torch.randn(2, 5, 3), torch.randint(0, 3, (2, 5))
    last = CrossEntropy(class_dim=-1)(lambda x: x, (logits, targets))
    expected = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
    torch.testing.assert_close(last, expected)
    second = CrossEntropy()(lambda x: x, (logits.movedim(-1, 1), targets))
    torch.testing.assert_close(second, expected)


def test_mean_squared_error_divides_by_elements() -> None:
    model, rows = model_and_rows()
    targets = torch.randn(7, 3, dtype=torch.float64)
    parts = list(zip(rows.split([2, 3, 2]), targets.split([2, 3, 2]), strict=True))
    expected = functional.mse_loss(model(rows), targets)
    together = from_microbatches(MeanSquaredError(), model, parts)
    torch.testing.assert_close(together, expected, rtol=1e-12, atol=0)
    assert MeanSquaredError().denominator((rows, targets)) == 21  # not 7 rows


def test_mean_squared_error_refuses_to_broadcast() -> None:
    message = r"shape of the outputs, \(7, 3\), got \(7, 1\): broadcasting would change the loss"
    model, rows = model_and_rows()
    with pytest.raises(ValueError, match=message):
        MeanSquaredError()(model, (rows, torch.zeros(7, 1)))


@pytest.mark.parametrize("objective", [CrossEntropy(), MeanSquaredError()])
def test_half_precision_outputs_are_summed_in_float32(objective: Objective) -> None:
    outputs = torch.randn(4000, 3, requires_grad=True)
    targets = torch.zeros(4000, dtype=torch.long)
    if isinstance(objective, MeanSquaredError):
        targets = torch.zeros(4000, 3)
    half = objective(lambda x: x.bfloat16(), (outputs, targets))
    assert half.dtype == torch.float32
    exact = objective(
        lambda x: x.bfloat16().double(),
        (outputs, targets.to(torch.float64) if targets.is_floating_point() else targets),
    )
    torch.testing.assert_close(half.double(), exact, rtol=1e-5, atol=0)


def test_additive_takes_two_functions() -> None:
    absolute = Additive(
        loss_sum=lambda model, batch: (model(batch["x"]) - batch["y"]).abs().sum(),
        count=lambda batch: batch["y"].numel(),
    )
    batch = {"x": torch.ones(2, 3), "y": torch.zeros(2, 3)}
    assert absolute(lambda x: x, batch) == 6
    assert absolute.denominator(batch) == 6


@pytest.mark.parametrize("wrong", [{"x": 1}, torch.ones(2, 2), (1, 2), (1, 2, 3), None])
@pytest.mark.parametrize("objective", [CrossEntropy(), MeanSquaredError()])
def test_microbatches_that_are_no_pairs_are_refused(objective: Objective, wrong: Any) -> None:
    message = rf"pair \(inputs, targets\) .* got {type(wrong).__name__}.*objective=Additive"
    with pytest.raises(TypeError, match=message):
        objective.denominator(wrong)


def test_parts_of_an_objective_that_cannot_work_are_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"weight must be a tensor .*, got \[1, 2\] of type list"):
        CrossEntropy(weight=[1, 2])
    with pytest.raises(TypeError, match=r"count must be a function, got 7\."):
        Additive(loss_sum=lambda model, batch: model(batch), count=7)


def test_class_probabilities_are_refused_because_their_count_is_another() -> None:
    _, rows = model_and_rows()
    message = r"targets must be class indices, got torch\.float64 of shape \(7, 3\).*Additive"
    with pytest.raises(TypeError, match=message):
        CrossEntropy().denominator((rows, torch.rand(7, 3, dtype=torch.float64)))
