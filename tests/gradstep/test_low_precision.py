"""Half precision sums lose what float32 sums keep, and optimizers take them afterwards."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import Parameter
from torch.optim import Optimizer

from gradstep import MeanSquaredError, clip_grad_norm_, low_precision, updates
from gradstep.low_precision import accumulate_in_float32

BF16, FP32 = torch.bfloat16, torch.float32
STEPS: list[tuple[type[Optimizer], dict[str, Any]]] = [
    (torch.optim.SGD, {"lr": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    (torch.optim.AdamW, {"lr": 0.1, "foreach": False}),
    (torch.optim.AdamW, {"lr": 0.1, "foreach": True}),
    (torch.optim.AdamW, {"lr": 0.1, "fused": True}),
    (torch.optim.RMSprop, {}),
    (torch.optim.Adagrad, {}),
]


def weight_of(*values: float, dtype: torch.dtype = BF16) -> Parameter:
    return Parameter(torch.tensor(values, dtype=dtype))


def accumulated(weight: Parameter, passes: int, optimizer: Optimizer | None = None) -> Tensor:
    """The sum of `passes` gradients of 1, in float32 where there is an optimizer."""
    if optimizer:
        accumulate_in_float32(optimizer)
    for _ in range(passes):
        weight.sum().backward()
    assert weight.grad is not None
    return weight.grad


@pytest.mark.parametrize(("dtype", "stuck"), [(BF16, 256), (torch.float16, 2048)])
def test_half_precision_sums_of_ones_get_stuck_and_float32_sums_do_not(
    dtype: torch.dtype, stuck: int
) -> None:
    wrong = accumulated(weight_of(0.0, dtype=dtype), 4 * stuck)
    assert (wrong.item(), wrong.dtype) == (stuck, dtype)
    weight = weight_of(0.0, dtype=dtype)
    right = accumulated(weight, 4 * stuck, torch.optim.SGD([weight], 0.1))
    assert (right.item(), right.dtype) == (4 * stuck, FP32)


def test_a_thousand_hundredths_are_ten() -> None:
    def summed(optimizers: list[Callable[[Any], Optimizer]]) -> float:
        weight = weight_of(0.0)
        for optimizer in optimizers:
            accumulate_in_float32(optimizer([weight]))
        for _ in range(1000):
            weight.backward(torch.tensor([0.01], dtype=BF16))
        return weight.grad.item()

    assert summed([]) == 4.0
    # 0.01 is 0.0100098 in bfloat16; 1e-5: a thousand roundings of float32
    assert summed([torch.optim.SGD]) == pytest.approx(10.0098, rel=1e-5)


def relative_error(dtype: torch.dtype) -> float:
    """Of the sum of 256 microbatch gradients of a bfloat16 layer, accumulated in `dtype`."""
    torch.manual_seed(0)
    layer = nn.Linear(8, 64, bias=False, dtype=BF16)
    if dtype is FP32:
        accumulate_in_float32(torch.optim.SGD(layer.parameters()))
    exact = torch.zeros(64, 8, dtype=torch.float64)
    for _ in range(256):
        loss = nn.functional.mse_loss(
            layer(torch.randn(16, 8).to(BF16)), torch.ones(16, 64, dtype=BF16)
        )
        exact += torch.autograd.grad(loss, layer.weight, retain_graph=True)[0].double()
        loss.backward()
    assert layer.weight.grad.dtype is dtype
    return ((layer.weight.grad - exact).norm() / exact.norm()).item()


def test_error_of_256_microbatches_is_that_of_float32() -> None:
    # bfloat16 rounds a growing sum by 2 ** -9 each time, float32 by 2 ** -24
    assert relative_error(BF16) > 1e-2
    assert relative_error(FP32) < 1e-7


@pytest.mark.parametrize("optimizer_class", [torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize("options", [{"foreach": False}, {"foreach": True}, {"fused": True}])
def test_torch_optimizers_refuse_float32_gradients_of_bfloat16(
    optimizer_class: type[Optimizer], options: dict[str, bool]
) -> None:
    # why the gradient is rounded for the step; when torch accepts it, that can go
    weight = weight_of(1.0)
    weight.grad_dtype = FP32
    weight.sum().backward()
    with pytest.raises(RuntimeError, match=r"expected (dtype c10::|scalar type )BFloat16"):
        optimizer_class([weight], **options).step()


@pytest.mark.parametrize(("optimizer_class", "options"), STEPS)
def test_a_step_uses_the_sum_rounded_once(
    optimizer_class: type[Optimizer], options: dict[str, Any]
) -> None:
    ours, expected, naive = (weight_of(1.0, 2.0) for _ in range(3))
    weights = (ours, expected, naive)
    optimizers = [optimizer_class([weight], **options) for weight in weights]
    accumulate_in_float32(optimizers[0])
    for sign in (1, -1, 1):  # three windows, so that moments count
        # beside 4, a sum in bfloat16 ignores 0.01
        for gradient in [[4.0, sign]] + 30 * [[0.01, sign]]:
            ours.backward(torch.tensor(gradient, dtype=BF16))
            naive.backward(torch.tensor(gradient, dtype=BF16))
        summed = ours.grad.clone()
        expected.grad = summed.to(BF16)
        for optimizer in optimizers:
            optimizer.step()
        assert torch.equal(ours, expected)
        assert torch.equal(ours.grad, summed)  # float32 again, to the bit
        assert not torch.equal(naive.grad, expected.grad)
        for optimizer in optimizers:
            optimizer.zero_grad()
    assert not torch.equal(ours, weight_of(1.0, 2.0))
    mine, theirs = (optimizers[i].state[weights[i]] for i in (0, 1))
    assert mine.keys() == theirs.keys()
    for key, moment in theirs.items():
        assert torch.equal(mine[key], moment)
        assert mine[key].dtype is moment.dtype


def test_moments_survive_a_saved_state_bit_for_bit() -> None:
    weight = weight_of(1.0)
    optimizer = torch.optim.SGD([weight], 0.1, momentum=0.9)
    accumulated(weight, 3, optimizer)
    optimizer.step()
    before = copy.deepcopy(optimizer.state_dict())
    optimizer.load_state_dict(before)
    assert optimizer.state_dict() == before


def test_torch_rounds_a_float32_momentum_when_it_loads() -> None:
    # the other reason to round for the step: SGD takes float32 and keeps it, until a resume
    weight = weight_of(1.0)
    weight.grad_dtype = FP32
    optimizer = torch.optim.SGD([weight], 0.1, momentum=0.9)
    weight.grad = torch.tensor([0.1])
    optimizer.step()
    assert optimizer.state[weight]["momentum_buffer"].dtype is FP32
    optimizer.load_state_dict(optimizer.state_dict())
    assert optimizer.state[weight]["momentum_buffer"].dtype is BF16


@pytest.mark.parametrize("set_to_none", [True, False])
def test_later_windows_are_summed_in_float32_too(set_to_none: bool) -> None:
    weight = weight_of(0.0)
    optimizer = torch.optim.AdamW([weight])
    for _ in range(3):
        assert accumulated(weight, 700, optimizer).item() == 700
        optimizer.step()
        optimizer.zero_grad(set_to_none=set_to_none)


def test_gradients_are_clipped_in_float32() -> None:
    weight = weight_of(0.0, 0.0)
    optimizer = torch.optim.SGD([weight], 1.0)
    accumulated(weight, 1000, optimizer)
    # 1e-6: the square root of two, to float32
    assert clip_grad_norm_([weight], 1.0).item() == pytest.approx(1000 * 2**0.5, rel=1e-6)
    assert weight.grad.dtype is FP32
    optimizer.step()
    torch.testing.assert_close(weight.detach(), torch.full((2,), -(0.5**0.5)).to(BF16))


def test_updates_of_many_microbatches_need_no_other_loop() -> None:
    def mean_gradient(prepare: bool) -> float:
        """The update of SGD after 600 equal rows, in one window, whose mean gradient is -2."""
        model = nn.Linear(1, 1, bias=False, dtype=BF16)
        nn.init.zeros_(model.weight)
        optimizer = torch.optim.SGD(model.parameters(), 1.0)
        if prepare:
            accumulate_in_float32(optimizer)
        row = (torch.ones(1, 1, dtype=BF16), torch.ones(1, 1, dtype=BF16))
        batches = [row] * 600
        objective = MeanSquaredError()
        [update] = updates(
            model, batches, optimizer, accumulation_steps=600, objective=objective, max_norm=4.0
        )
        assert update.accepted
        return -model.weight.item()

    # one part, 1/300, is known to 2 ** -9 in bfloat16, and so is the weight
    assert mean_gradient(prepare=True) == pytest.approx(-2, rel=2**-8)
    assert mean_gradient(prepare=False) > -1.1


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("dtype", [BF16, torch.float16])
def test_a_scaler_unscales_and_steps(dtype: torch.dtype, fused: bool) -> None:
    weight = weight_of(1.0, dtype=dtype)
    optimizer = torch.optim.SGD([weight], 0.25, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    accumulate_in_float32(optimizer)
    for factor in (1.0, float("inf"), 1.0):  # the second window is skipped
        for _ in range(2):
            scaler.scale(factor * weight.sum()).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    assert weight.item() == 0.0
    assert scaler.get_scale() == 512.0


def test_torch_does_not_unscale_float16_gradients() -> None:
    weight = weight_of(1.0, dtype=torch.float16)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(weight.sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.unscale_(torch.optim.SGD([weight]))


def test_other_parameters_are_left_alone() -> None:
    single, double, unused = (
        weight_of(1.0, dtype=FP32),
        weight_of(1.0, dtype=torch.float64),
        weight_of(1.0),
    )
    optimizer = torch.optim.AdamW([single, double, unused], lr=0.1)
    accumulate_in_float32(optimizer)
    (single.sum() + double.sum()).backward()
    optimizer.step()
    assert (single.grad.dtype, double.grad.dtype, unused.grad) == (FP32, torch.float64, None)
    assert unused.item() == 1.0
    assert single.item() < 1.0
    assert double.item() < 1.0


@pytest.mark.parametrize("dtype", [BF16, torch.float16])
def test_sparse_gradients_are_summed_and_rounded_too(dtype: torch.dtype) -> None:
    table = nn.Embedding(2, 1, sparse=True, _weight=torch.zeros(2, 1, dtype=dtype))
    optimizer = torch.optim.SGD(table.parameters(), 1.0)
    accumulate_in_float32(optimizer)
    for _ in range(300):
        table(torch.tensor([1])).sum().backward()
    assert table.weight.grad.dtype is FP32
    optimizer.step()
    assert table.weight.flatten().tolist() == [0.0, -300.0]


def test_calling_it_again_changes_nothing() -> None:
    weight = weight_of(1.0)
    optimizer = torch.optim.SGD([weight], 0.25)
    accumulate_in_float32(optimizer)
    accumulated(weight, 2, optimizer)
    optimizer.step()
    assert (weight.item(), weight.grad.item(), weight.grad.dtype) == (0.5, 2.0, FP32)


def test_a_group_added_later_raises_until_it_is_prepared() -> None:
    early, late = weight_of(1.0), weight_of(1.0)
    optimizer = torch.optim.SGD([early], 0.25)
    accumulate_in_float32(optimizer)
    optimizer.add_param_group({"params": [late]})
    (early.sum() + late.sum()).backward()
    message = r"gradient of parameter 0 of group 1 was accumulated in torch\.bfloat16.*zero_grad"
    with pytest.raises(RuntimeError, match=message):
        optimizer.step()
    assert (early.item(), late.item(), early.grad.dtype) == (1.0, 1.0, FP32)
    optimizer.zero_grad()
    accumulate_in_float32(optimizer)
    accumulated(late, 4)
    optimizer.step()
    assert (early.item(), late.item()) == (1.0, 0.0)


def test_a_converted_model_raises() -> None:
    model = nn.Linear(1, 1, bias=False, dtype=BF16)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    accumulated(model.weight, 1, optimizer)
    model.half()  # torch converts the gradient with it
    with pytest.raises(RuntimeError, match=r"group 0 was accumulated in torch\.float16, not in"):
        optimizer.step()


def test_a_step_that_raised_is_noticed_by_the_next() -> None:
    weight = weight_of(1.0)
    optimizer = torch.optim.SGD([weight], 0.25)
    accumulated(weight, 1, optimizer)
    optimizer.param_groups[0]["weight_decay"] = "0.1"  # makes torch fail in the middle
    with pytest.raises(TypeError):
        optimizer.step()
    optimizer.param_groups[0]["weight_decay"] = 0
    optimizer.zero_grad()
    accumulated(weight, 1)  # in bfloat16, without a word from torch
    with pytest.raises(RuntimeError, match=r"or the previous step raised\. Drop this window"):
        optimizer.step()
    optimizer.zero_grad()
    assert accumulated(weight, 300, optimizer).item() == 300


def test_a_deep_copy_has_to_be_prepared_itself() -> None:
    model = nn.Linear(1, 1, bias=False, dtype=BF16)
    accumulate_in_float32(torch.optim.SGD(model.parameters(), 0.25))
    double = copy.deepcopy(model)
    assert accumulated(double.weight, 300).dtype is BF16
    double.weight.grad = None
    optimizer = torch.optim.SGD(double.parameters(), 0.25)
    assert accumulated(double.weight, 300, optimizer).item() == 300


def test_sums_that_float16_cannot_hold_raise_before_the_step() -> None:
    weight, other = weight_of(1.0, dtype=torch.float16), weight_of(1.0, dtype=torch.float16)
    optimizer = torch.optim.SGD([other, weight], 1.0)
    accumulate_in_float32(optimizer)
    for _ in range(3):
        (other.sum() + 3e4 * weight.sum()).backward()
    message = r"parameter 1 of group 0 reaches 9e\+04, and float16 ends at 65504\. Unscale and clip"
    with pytest.raises(OverflowError, match=message):
        optimizer.step()
    assert (weight.item(), other.item(), weight.grad.item()) == (1.0, 1.0, 9e4)
    clip_grad_norm_([other, weight], 1.0)
    optimizer.step()
    assert weight.item() < 0.01


@pytest.mark.parametrize("pass_closure", [lambda o, c: o.step(c), lambda o, c: o.step(closure=c)])
def test_a_closure_is_refused(pass_closure: Callable[..., Any]) -> None:
    weight = weight_of(1.0)
    optimizer = torch.optim.SGD([weight], 0.25)
    accumulated(weight, 1, optimizer)
    with pytest.raises(ValueError, match=r"step\(\) must be called without a closure"):
        pass_closure(optimizer, lambda: weight.sum())
    assert (weight.item(), weight.grad.dtype) == (1.0, FP32)
    optimizer.step()
    assert weight.item() == 0.75


def test_a_gradient_that_is_already_rounded_is_refused() -> None:
    fresh, weight = weight_of(1.0), weight_of(1.0)
    accumulated(weight, 1)
    optimizer = torch.optim.SGD([fresh, weight])
    message = r"parameter 1 of group 0 already has a gradient, summed in torch\.bfloat16"
    with pytest.raises(ValueError, match=message):
        accumulate_in_float32(optimizer)
    assert fresh.grad_dtype is BF16
    optimizer.zero_grad()
    accumulate_in_float32(optimizer)
    assert fresh.grad_dtype is weight.grad_dtype is FP32


def test_a_sharded_parameter_is_refused() -> None:
    weight = weight_of(1.0)
    weight.full_tensor = weight.detach  # what tells a DTensor
    with pytest.raises(TypeError, match=r"parameter 0 of group 0 is sharded .*reduce_dtype=torch"):
        accumulate_in_float32(torch.optim.SGD([weight]))


def test_something_else_than_an_optimizer_is_refused() -> None:
    with pytest.raises(TypeError, match=r"optimizer must be a torch optimizer, got Linear.* Build"):
        accumulate_in_float32(nn.Linear(1, 1))  # type: ignore[arg-type]


def test_a_torch_without_grad_dtype_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_precision, "hasattr", lambda *_: False, raising=False)
    message = rf"torch {torch.__version__.split('+')[0]}.* has no Tensor\.grad_dtype.*autocast"
    with pytest.raises(NotImplementedError, match=message):
        accumulate_in_float32(torch.optim.SGD([weight_of(1.0)]))


def test_autocast_over_float32_parameters_needs_none_of_it() -> None:
    layer = nn.Linear(1, 1, bias=False)
    for _ in range(1024):
        with torch.autocast("cpu", dtype=BF16):
            output = layer(torch.ones(1, 1))
        output.sum().backward()
    assert output.dtype is BF16
    assert layer.weight.grad.item() == 1024
