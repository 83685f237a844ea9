"""Predicted sizes equal those of what a real step leaves behind."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Optimizer

from gradstep.low_precision import accumulate_in_float32
from gradstep.sizes import StateBytes, planned_state_bytes, state_bytes

OPTIMIZERS: list[tuple[type[Optimizer], dict[str, Any], int]] = [
    (torch.optim.SGD, {"lr": 0.1}, 0),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}, 1),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}, 1),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "fused": True}, 1),
    (torch.optim.Adam, {}, 2),
    (torch.optim.AdamW, {}, 2),
    (torch.optim.AdamW, {"foreach": True}, 2),
    (torch.optim.AdamW, {"fused": True}, 2),
    (torch.optim.AdamW, {"amsgrad": True}, 3),
    (torch.optim.AdamW, {"lr": torch.tensor(0.1)}, 2),
    (torch.optim.RMSprop, {}, 1),
    (torch.optim.RMSprop, {"momentum": 0.9, "centered": True}, 3),
    (torch.optim.Adagrad, {}, 1),
    (torch.optim.Adadelta, {}, 2),
    (torch.optim.Adamax, {}, 2),
    (torch.optim.RAdam, {}, 2),
    (torch.optim.Rprop, {}, 2),
]


def network(dtype: torch.dtype = torch.float32) -> nn.Sequential:
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1)).to(dtype)


def entries(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def step(model: nn.Module, optimizer: Optimizer) -> None:
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.grad = torch.ones_like(parameter)
    optimizer.step()


def held(model: nn.Module, optimizer: Optimizer) -> StateBytes:
    """Summed from the tensors themselves, step counters left out."""
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    moments = [
        value
        for state in optimizer.state.values()
        for key, value in state.items()
        if key != "step" and isinstance(value, torch.Tensor)
    ]
    return StateBytes(
        parameters=sum(p.nbytes for p in model.parameters()),
        gradients=sum(g.nbytes for g in gradients),
        moments=sum(m.nbytes for m in moments),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(("optimizer_class", "options", "moments"), OPTIMIZERS)
def test_prediction_equals_what_a_step_leaves(
    optimizer_class: type[Optimizer], options: dict[str, Any], moments: int, dtype: torch.dtype
) -> None:
    model = network(dtype)
    optimizer = optimizer_class(model.parameters(), **options)
    predicted = state_bytes(model, optimizer)
    step(model, optimizer)
    assert predicted == held(model, optimizer) == state_bytes(model, optimizer)
    assert predicted.moments == moments * predicted.parameters
    assert predicted == planned_state_bytes(entries(model), optimizer_class, dtype=dtype, **options)
    assert predicted.total == (2 + moments) * entries(model) * dtype.itemsize


def test_prediction_changes_nothing() -> None:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    calls: list[str] = []
    optimizer.register_step_pre_hook(lambda *_: calls.append("step"))
    before = [parameter.clone() for parameter in model.parameters()]
    state_bytes(model, optimizer)
    assert not optimizer.state
    assert not calls
    assert scheduler.last_epoch == 0
    for parameter, saved in zip(model.parameters(), before, strict=True):
        assert torch.equal(parameter, saved)
        assert parameter.grad is None
    step(model, optimizer)
    assert calls == ["step"]
    assert not torch.equal(before[0], model[0].weight)


def test_four_hundred_million_parameters_with_adam_take_six_point_four_gigabytes() -> None:
    planned = planned_state_bytes(400_000_000, torch.optim.Adam)
    assert planned == StateBytes(1_600_000_000, 1_600_000_000, 3_200_000_000)
    assert planned.total == 6_400_000_000


def test_bfloat16_with_float32_master_weights_takes_sixteen_bytes_a_parameter() -> None:
    planned = planned_state_bytes(
        1_000_000, torch.optim.AdamW, dtype=torch.bfloat16, master_dtype=torch.float32
    )
    assert planned == StateBytes(2_000_000, 2_000_000, 8_000_000, 4_000_000)
    assert planned.total == 16_000_000
    # without master weights the moments are in bfloat16 as well
    assert planned_state_bytes(1_000_000, dtype=torch.bfloat16).total == 8_000_000


def test_real_master_weights_are_told_from_parameters() -> None:
    model = network(torch.bfloat16)
    masters = [parameter.detach().float() for parameter in model.parameters()]
    found = state_bytes(model, torch.optim.AdamW([m.requires_grad_() for m in masters]))
    count = entries(model)
    assert found == StateBytes(2 * count, 2 * count, 8 * count, 4 * count)


def test_frozen_parameters_have_neither_gradient_nor_moments() -> None:
    model = network()
    model[0].requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters())
    predicted = state_bytes(model, optimizer)
    step(model, optimizer)
    assert predicted == held(model, optimizer) == state_bytes(model, optimizer)
    trained = model[2].weight.nbytes + model[2].bias.nbytes
    assert (predicted.gradients, predicted.moments) == (trained, 2 * trained)
    assert predicted.parameters == 4 * entries(model)


def test_parameters_that_the_optimizer_lacks_have_a_gradient_and_no_moments() -> None:
    model = network()
    predicted = state_bytes(model, torch.optim.AdamW(model[2].parameters()))
    assert predicted.gradients == predicted.parameters
    assert predicted.moments == 2 * (model[2].weight.nbytes + model[2].bias.nbytes)
    assert predicted.master_weights == 0


def test_shared_parameters_count_once() -> None:
    model = nn.Sequential(nn.Embedding(11, 3), nn.Linear(3, 11, bias=False))
    separate = state_bytes(model, torch.optim.AdamW(model.parameters()))
    model[1].weight = model[0].weight
    tied = state_bytes(model, torch.optim.AdamW(model.parameters()))
    assert tied.total * 2 == separate.total == 2 * 16 * 33


def test_parameters_without_a_first_gradient_are_still_predicted() -> None:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters())
    predicted = state_bytes(model, optimizer)
    model[2].weight.grad = torch.ones_like(model[2].weight)
    optimizer.step()
    assert len(optimizer.state) == 1
    assert state_bytes(model, optimizer) == predicted


def test_groups_with_their_own_options_are_predicted_each() -> None:
    model = network()
    groups = [{"params": model[0].parameters(), "momentum": 0.9}, {"params": model[2].parameters()}]
    optimizer = torch.optim.SGD(groups, lr=0.1)
    predicted = state_bytes(model, optimizer)
    step(model, optimizer)
    assert predicted == held(model, optimizer)
    assert predicted.moments == model[0].weight.nbytes + model[0].bias.nbytes


def test_a_model_without_memory_can_be_sized() -> None:
    with torch.device("meta"):
        model = nn.Linear(100_000, 100_000, bias=False)
    assert state_bytes(model, torch.optim.AdamW(model.parameters())).total == 160_000_000_000


def test_gradients_accumulated_in_float32_count_as_float32() -> None:
    model = network(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters())
    accumulate_in_float32(optimizer)
    predicted = state_bytes(model, optimizer)
    assert predicted.gradients == 2 * predicted.parameters == 4 * entries(model)
    model(torch.ones(2, 5, dtype=torch.bfloat16)).sum().backward()
    optimizer.step()
    assert held(model, optimizer) == predicted == state_bytes(model, optimizer)


def test_nested_state_is_measured() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for parameter in model.parameters():
        nested = {"left": [parameter.detach().clone()], "rank": 3, "step": torch.ones(())}
        optimizer.state[parameter] = {"shampoo": (nested, None)}
    assert state_bytes(model, optimizer).moments == 4 * entries(model)


@pytest.mark.parametrize("optimizer_class", [torch.optim.ASGD, torch.optim.Adafactor])
def test_an_optimizer_that_reads_values_is_named_and_can_be_measured(
    optimizer_class: type[Optimizer],
) -> None:
    model = network()
    optimizer = optimizer_class(model.parameters())
    message = rf"state of {optimizer_class.__name__} cannot be predicted .*Call optimizer\.step\(\)"
    with pytest.raises(ValueError, match=message):
        state_bytes(model, optimizer)
    assert not optimizer.state
    step(model, optimizer)
    assert state_bytes(model, optimizer) == held(model, optimizer)
    assert state_bytes(model, optimizer).moments > 0


def test_an_unknown_optimizer_is_rehearsed_like_any_other() -> None:
    class Averaging(Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {})

        def step(self, closure: Any = None) -> None:
            for parameter in self.param_groups[0]["params"]:
                state = self.state[parameter]
                state.setdefault("average", torch.zeros_like(parameter, dtype=torch.float64))
                state["average"].lerp_(parameter.detach().double(), 0.1)

    model = network()
    optimizer = Averaging(model.parameters())
    assert state_bytes(model, optimizer).moments == 8 * entries(model)
    step(model, optimizer)
    assert state_bytes(model, optimizer) == held(model, optimizer)


def test_an_optimizer_whose_step_needs_a_closure_is_named_and_can_be_measured() -> None:
    model = network()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    with pytest.raises(ValueError, match=r"state of LBFGS cannot be predicted .*closure"):
        state_bytes(model, optimizer)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (model(torch.ones(1, 5)) - 1).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    # the direction, the previous gradient, and lists of at least one step and one change
    assert state_bytes(model, optimizer).moments >= 4 * 4 * entries(model)


def test_a_stepped_optimizer_that_cannot_be_rehearsed_is_only_measured() -> None:
    model = network()
    optimizer = torch.optim.ASGD(model.parameters())
    model[2].weight.grad = torch.ones_like(model[2].weight)
    optimizer.step()
    assert state_bytes(model, optimizer).moments == held(model, optimizer).moments


def test_a_frozen_parameter_does_not_hinder_the_measuring() -> None:
    model = network()
    model[0].requires_grad_(False)
    optimizer = torch.optim.Adafactor(model.parameters())
    step(model, optimizer)
    assert state_bytes(model, optimizer) == held(model, optimizer)


def test_of_a_sharded_parameter_the_local_part_counts() -> None:
    weight = nn.Parameter(torch.zeros(8, 3))
    weight.to_local = lambda: weight.detach()[:2]  # what tells a DTensor
    model = nn.ParameterList([weight])
    found = state_bytes(model, torch.optim.AdamW(model.parameters()))
    assert found == StateBytes(24, 24, 48)


def test_models_and_optimizers_are_told_from_other_things() -> None:
    model = network()
    with pytest.raises(TypeError, match=r"model must be a torch\.nn\.Module, got a generator"):
        state_bytes(model.parameters(), torch.optim.SGD(model.parameters()))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"optimizer must be .* of type type\..*planned_state_byt"):
        state_bytes(model, torch.optim.Adam)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [4e8, True, "400M"])
def test_counts_that_are_no_integers_are_refused(count: Any) -> None:
    with pytest.raises(TypeError, match=rf"count must be an integer, got {count!r} of type"):
        planned_state_bytes(count)
    with pytest.raises(ValueError, match=r"count must be at least 0, got -1\."):
        planned_state_bytes(-1)
