"""Bad input: an error that names argument, value and cure, and untouched gradients."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import Parameter

import gradstep
from gradstep import clip_grad_norm_, clip_grad_value_, global_norm

from . import oracle

CLIPPERS = [clip_grad_norm_, clip_grad_value_]
BOUND = {clip_grad_norm_: "max_norm", clip_grad_value_: "clip_value"}


@contextmanager
def untouched(*tensors: Tensor) -> Iterator[None]:
    before = [oracle.bits(tensor).clone() for tensor in tensors]
    yield
    for tensor, saved in zip(tensors, before, strict=True):
        assert torch.equal(oracle.bits(tensor), saved)


@pytest.fixture
def model() -> torch.nn.Module:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 3.0)
    return model


def gradients(model: torch.nn.Module) -> list[Tensor]:
    return [p.grad for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("clip", CLIPPERS)
@pytest.mark.parametrize("bound", [-1.0, -math.inf, math.nan, torch.tensor(-1.0)])
def test_bounds_below_zero_are_refused(
    model: torch.nn.Module, clip: Callable[..., Any], bound: Any
) -> None:
    message = rf"{BOUND[clip]} must be at least 0, got {float(bound)}: .*Use a positive number"
    with untouched(*gradients(model)), pytest.raises(ValueError, match=message):
        clip(model.parameters(), bound)


@pytest.mark.parametrize("clip", CLIPPERS)
@pytest.mark.parametrize("bound", ["1.0", b"1", None, True, [1.0], 1j, torch.ones(2)])
def test_bounds_that_are_no_numbers_are_refused(
    model: torch.nn.Module, clip: Callable[..., Any], bound: Any
) -> None:
    message = rf"{BOUND[clip]} must be a number, got .* of type {type(bound).__name__}\."
    with untouched(*gradients(model)), pytest.raises(TypeError, match=message):
        clip(model.parameters(), bound)


@pytest.mark.parametrize("order", [0, -1, -math.inf, math.nan])
def test_orders_that_are_no_norm_are_refused(model: torch.nn.Module, order: float) -> None:
    message = rf"norm_type must be greater than 0, got {float(order)}\. Use 2\.0"
    with untouched(*gradients(model)), pytest.raises(ValueError, match=message):
        clip_grad_norm_(model.parameters(), 1.0, order)
    with pytest.raises(ValueError, match=message):
        gradstep.global_norm(gradients(model), order)


@pytest.mark.parametrize("clip", CLIPPERS)
def test_a_used_up_generator_warns_its_caller(clip: Callable[..., Any]) -> None:
    parameters = torch.nn.Linear(2, 2).parameters()
    torch.optim.SGD(parameters, lr=0.1)
    with pytest.warns(UserWarning, match=r"iterator with nothing left.*Pass a list") as caught:
        clip(parameters, 1.0)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("divisor", [0, -2.0, 0.5, math.inf, math.nan])
def test_divisors_that_are_none_are_refused(model: torch.nn.Module, divisor: float) -> None:
    message = rf"divide_by must be a finite number of at least 1, got {float(divisor)}: "
    with untouched(*gradients(model)), pytest.raises(ValueError, match=message):
        clip_grad_norm_(model.parameters(), 1.0, divide_by=divisor)


def test_an_order_that_is_no_number_is_refused(model: torch.nn.Module) -> None:
    with untouched(*gradients(model)), pytest.raises(TypeError, match=r"norm_type .* got 'fro'"):
        clip_grad_norm_(model.parameters(), 1.0, "fro")


@pytest.mark.parametrize("clip", CLIPPERS)
def test_an_unknown_policy_is_refused(model: torch.nn.Module, clip: Callable[..., Any]) -> None:
    message = "nonfinite must be 'raise' or 'leave', got 'skip'"
    with untouched(*gradients(model)), pytest.raises(ValueError, match=message):
        clip(model.parameters(), 1.0, nonfinite="skip")


@pytest.mark.parametrize("clip", CLIPPERS)
@pytest.mark.parametrize(
    ("take", "message"),
    [
        (lambda model: model[0], r"iterable of tensors, got a Linear\. Pass model\.parameters"),
        (lambda model: model, r"got Linear\(.* of type Linear at index 0\. Pass model\.parameters"),
        (lambda model: "weight", r"iterable of tensors, got a str\. Pass model\.parameters"),
        (lambda model: None, r"iterable of tensors, got a NoneType"),
        (lambda model: dict(model.named_parameters()), r"got '0\.weight' of type str at index 0"),
        (lambda model: [*model.parameters(), 3], r"got 3 of type int at index 4"),
        (lambda model: torch.optim.SGD(model.parameters(), 0.1).param_groups, r"type dict at"),
        (lambda model: [None], r"got None of type NoneType at index 0"),
        (lambda model: [(1, 2, 3)], r"got \(1, 2, 3\) of type tuple at index 0"),
    ],
)
def test_parameters_that_are_no_tensors_are_refused(
    model: torch.nn.Module, clip: Callable[..., Any], take: Callable[..., Any], message: str
) -> None:
    with untouched(*gradients(model)), pytest.raises(TypeError, match=message):
        clip(take(model), 1.0)


@pytest.mark.parametrize("clip", CLIPPERS)
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("named", [True, False])
def test_a_nonfinite_gradient_is_named_and_nothing_is_written(
    model: torch.nn.Module, clip: Callable[..., Any], wrong: float, named: bool
) -> None:
    model[1].weight.grad[0, 1] = wrong
    name = "1.weight" if named else "number 2"
    message = rf"gradient of parameter {name} is not finite: 1 of 2 entries, the first is {wrong}"
    parameters = model.named_parameters() if named else model.parameters()
    with untouched(*gradients(model)), pytest.raises(RuntimeError, match=message) as caught:
        clip(parameters, 1.0)
    assert isinstance(caught.value, gradstep.NonfiniteGradientError)
    assert isinstance(caught.value, FloatingPointError)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_left_gradients_are_reported_by_the_norm(model: torch.nn.Module, wrong: float) -> None:
    model[1].weight.grad[0, 1] = wrong
    with untouched(*gradients(model)):
        for policy in ({"nonfinite": "leave"}, {"error_if_nonfinite": False}):
            norm = clip_grad_norm_(model.parameters(), 1.0, **policy).item()
            assert math.isnan(norm) if math.isnan(wrong) else norm == math.inf
        clip_grad_value_(model.parameters(), 1.0, nonfinite="leave")


def test_error_if_nonfinite_decides_over_nonfinite(model: torch.nn.Module) -> None:
    model[0].bias.grad[0] = math.nan
    with pytest.raises(gradstep.NonfiniteGradientError):
        clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True, nonfinite="leave")
    clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=False, nonfinite="raise")


def test_measuring_with_an_infinite_bound_keeps_finite_gradients() -> None:
    # torch turns these into NaN: the norm overflows and inf / inf is the coefficient
    tensor = torch.full((4,), 2e19)
    with untouched(tensor):
        assert clip_grad_norm_(oracle.parameters_with(tensor), math.inf) == pytest.approx(4e19)


@pytest.mark.parametrize("clip", CLIPPERS)
def test_a_dtype_without_a_norm_is_named(clip: Callable[..., Any]) -> None:
    parameter = Parameter(torch.zeros(2, dtype=torch.float8_e4m3fn))
    parameter.grad = torch.ones(2).to(torch.float8_e4m3fn)
    message = r"gradient of parameter w has dtype torch\.float8_e4m3fn; supported are float16"
    with pytest.raises(TypeError, match=message):
        clip([("w", parameter)], 1.0)


@pytest.mark.parametrize("wrong", [3.0, None, "abc", torch.nn.Linear(1, 1)])
def test_something_that_holds_no_gradients_is_refused(wrong: Any) -> None:
    message = rf"tensors must be .*, got a {type(wrong).__name__}\. Pass \[p\.grad for p in"
    with pytest.raises(TypeError, match=message):
        global_norm(wrong)


def test_no_gradients_at_all_are_no_reason_for_a_warning() -> None:
    assert global_norm(gradient for gradient in ()) == 0


def test_numbers_beyond_float64_are_refused(model: torch.nn.Module) -> None:
    with untouched(*gradients(model)):
        with pytest.raises(TypeError, match="max_norm must be a number, got 1000"):
            clip_grad_norm_(model.parameters(), 10**400)
        with pytest.raises(ValueError, match=r"norm_type 0\.0001 gives 9 entries a norm beyond"):
            clip_grad_norm_(model.parameters(), 1.0, 1e-4)


def test_a_kept_gradient_of_an_inner_tensor_is_named() -> None:
    inner = torch.ones(2, requires_grad=True) * 2
    inner.retain_grad()
    (inner * math.nan).sum().backward()
    with pytest.raises(gradstep.NonfiniteGradientError, match="gradient of parameter number 0"):
        clip_grad_norm_([inner], 1.0)
