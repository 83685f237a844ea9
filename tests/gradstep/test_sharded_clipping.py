"""Clipping across ranks equals clipping the whole gradient; torch's own is the control."""

import itertools
import math
import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

import gradstep
from gradstep import NonfiniteGradientError

from .sharded import (
    Collectives,
    Net,
    Uneven,
    both,
    fsdp,
    gradients,
    local,
    mesh_of,
    on_ranks,
    parameter,
    seeded,
    tensor_parallel,
    trained,
    whole,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

ORDERS = (0.5, 1, 2, 3, math.inf)
GATHER, REDUCE = "allgather", "allreduce"
STRATEGIES: dict[str, tuple[Any, ...]] = {
    "fsdp": (fsdp, Net, (2,), [GATHER]),
    "fsdp, uneven and empty shards": (fsdp, Uneven, (2,), [GATHER]),
    "tensor parallel": (tensor_parallel, Net, (2,), [REDUCE, GATHER]),
    "both": (both, Net, (2, 2), [GATHER, GATHER]),
    "hybrid": (fsdp, Uneven, (2, 2), [GATHER, GATHER]),
}


def states(parameters: list[nn.Parameter]) -> list[tuple[Tensor, int]]:
    """What this rank holds of the gradients, and how often it was written to."""
    return [(local(p.grad).clone(), local(p.grad)._version) for p in parameters]


def assert_not_written(parameters: list[nn.Parameter], before: list[Any]) -> None:
    for (now, version), (then, old) in zip(states(parameters), before, strict=True):
        assert version == old
        torch.testing.assert_close(now, then, rtol=0, atol=0, equal_nan=True)


def clipped_like_the_whole(
    build: Callable[..., nn.Module], kind: Any, sizes: tuple[int, ...], collectives: list[str]
) -> list[float]:
    model, reference = trained(build(seeded(kind), mesh_of(*sizes))), trained(seeded(kind))
    parameters = list(model.parameters())
    start, wholes = states(parameters), gradients(model)
    norms = []
    for order in ORDERS:
        for p, (shard, _) in zip(parameters, start, strict=True):
            local(p.grad).copy_(shard)
        for name, p in reference.named_parameters():
            p.grad = wholes[name].clone()
        norm = gradstep.clip_grad_norm_(reference.parameters(), 0.1, order)
        before = states(parameters)
        assert gradstep.clip_grad_norm_(parameters, norm * (1 + 1e-12), order) > 0.1
        assert_not_written(parameters, before)
        with Collectives() as counted:
            found = gradstep.clip_grad_norm_(parameters, 0.1, order)
        assert counted.names == collectives
        assert type(found) is Tensor
        assert found.dtype == torch.float64
        torch.testing.assert_close(found, norm, rtol=1e-12, atol=0)
        for name, gradient in gradients(model).items():
            expected = reference.get_parameter(name).grad
            torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-15)
            assert not torch.equal(gradient, wholes[name])
        before = states(parameters)
        assert gradstep.clip_grad_norm_(parameters, 0.1, order) <= 0.1
        assert_not_written(parameters, before)
        norms.append(found.item())
    return norms


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sharded_clipping_equals_clipping_the_whole(strategy: str) -> None:
    sizes = STRATEGIES[strategy][2]
    norms = on_ranks(math.prod(sizes), clipped_like_the_whole, *STRATEGIES[strategy])
    assert all(found == norms[0] for found in norms)  # bit for bit
    assert len(set(norms[0])) == len(ORDERS)


def mixed() -> list[nn.Parameter]:
    """Two meshes, a plain tensor, copies and summands."""
    line, column = mesh_of(2), mesh_of(2, 1)
    summed = nn.Parameter(DTensor.from_local(torch.zeros(2), line, [Replicate()]))
    summand = torch.tensor([6.0 - 2 * dist.get_rank(), 0.0])
    summed.grad = DTensor.from_local(summand, line, [Partial()])
    return [
        parameter(torch.tensor([0.0, 1.0, 0.0]), line, Shard(0)),
        parameter(torch.tensor([[0.0], [2.0]]), column, Shard(0), Shard(1)),
        parameter(torch.tensor([4.0, 0.0])),
        parameter(torch.tensor([2.0]), column, Replicate(), Replicate()),
        summed,
    ]


def mixed_lists() -> tuple[float, list[str], list[list[float]]]:
    with Collectives() as counted:
        parameters = mixed()
        counted.names.clear()  # of distributing them
        norm = gradstep.clip_grad_norm_(parameters, 1.0)
    torch.testing.assert_close(gradstep.global_norm([p.grad for p in mixed()]), norm)
    return norm.item(), counted.names, [whole(p.grad).flatten().tolist() for p in parameters]


def test_lists_may_mix_meshes_plain_tensors_copies_and_summands() -> None:
    first, second = on_ranks(2, mixed_lists)
    assert first == second
    norm, collectives, clipped = first
    total = math.sqrt(1 + 4 + 16 + 4 + 100)
    assert norm == pytest.approx(total, rel=1e-15)
    assert collectives == [REDUCE, GATHER]  # (2,) and (2, 1) have the same groups
    expected = [0, 1, 0, 0, 2, 4, 0, 2, 10, 0]
    assert [*itertools.chain(*clipped)] == pytest.approx([e / total for e in expected], rel=1e-6)


def torch_raises() -> list[str]:
    sharded, other, plain, *_ = mixed()
    messages = []
    for parameters in ([sharded, plain], [sharded, other]):
        with pytest.raises(RuntimeError) as caught:
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        messages.append(str(caught.value))
    return messages


def test_torch_raises_for_mixed_lists() -> None:
    for messages in on_ranks(2, torch_raises):
        assert "mixed torch.Tensor and DTensor" in messages[0]
        assert "must have the same mesh" in messages[1]


def largest_entry() -> tuple[float, float, float]:
    p = parameter(torch.tensor([3.0, -8.0]), mesh_of(2), Shard(0))
    ours = gradstep.global_norm([p.grad], math.inf).item()
    theirs = torch.nn.utils.clip_grad_norm_([p], math.inf, math.inf)
    assert isinstance(theirs, DTensor)
    return ours, theirs.item(), theirs.full_tensor().item()


def test_item_of_torchs_largest_entry_is_that_of_the_rank() -> None:
    assert on_ranks(2, largest_entry) == [(8.0, 3.0, 8.0), (8.0, 8.0, 8.0)]


def one_wrong_entry(wrong: float) -> list[str]:
    model = trained(fsdp(seeded(Net), mesh_of(2)))
    if dist.get_rank() == 1:
        local(model.get_parameter("up.weight").grad)[2, 3] = wrong
    before = states(list(model.parameters()))
    messages = []
    for call in (
        lambda: gradstep.clip_grad_norm_(model.named_parameters(), 0.1),
        lambda: gradstep.clip_grad_norm_(model.named_parameters(), math.inf, math.inf),
        lambda: gradstep.clip_grad_value_(model.named_parameters(), 0.1),
        lambda: gradstep.global_norm([p.grad for p in model.parameters()], 1, True),
    ):
        with pytest.raises(NonfiniteGradientError) as caught:
            call()
        messages.append(str(caught.value))
    for order in ORDERS:
        norm = gradstep.clip_grad_norm_(model.parameters(), 0.1, order, nonfinite="leave").item()
        assert math.isnan(norm) if math.isnan(wrong) else norm == math.inf
    gradstep.clip_grad_value_(model.parameters(), 0.1, nonfinite="leave")
    assert_not_written(list(model.parameters()), before)
    return messages


@pytest.mark.parametrize("wrong", [math.nan, -math.inf])
def test_a_wrong_entry_on_one_rank_raises_on_every_rank_and_changes_nothing(wrong: float) -> None:
    messages, others = on_ranks(2, one_wrong_entry, wrong)
    assert messages == others
    for message in messages[:3]:
        assert message.startswith(
            "on rank 1 the gradient of parameter up.weight is not finite: "
            f"1 of 64 entries, the first is {wrong}. No gradient was changed."
        )
    assert "on rank 1 gradient number 2 is not finite" in messages[3]


def wrong_copy() -> str:
    """A plain gradient should be the same everywhere, and is not."""
    sharded = parameter(torch.ones(2), mesh_of(2), Shard(0))
    copied = parameter(torch.tensor([math.nan if dist.get_rank() else 1.0]))
    with pytest.raises(NonfiniteGradientError) as caught:
        gradstep.clip_grad_norm_([sharded, copied], 1.0)
    return str(caught.value)


def test_a_wrong_entry_in_one_of_the_copies_raises_on_every_rank() -> None:
    for message in on_ranks(2, wrong_copy):
        assert message.startswith("on rank 1 the gradient of parameter number 1 is not finite")


def values_limited() -> None:
    model, reference = trained(tensor_parallel(seeded(Net), mesh_of(2))), trained(seeded(Net))
    parameters = list(model.parameters())
    before = states(parameters)
    gradstep.clip_grad_value_(parameters, 1e3)
    assert_not_written(parameters, before)
    gradstep.clip_grad_value_(parameters, 0.3)
    gradstep.clip_grad_value_(reference.parameters(), 0.3)
    for name, gradient in gradients(model).items():
        expected = reference.get_parameter(name).grad
        assert expected.abs().max() == 0.3
        torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-12)


def test_limiting_values_of_shards_limits_those_of_the_whole() -> None:
    on_ranks(2, values_limited)


def refusals() -> list[str]:
    mesh = mesh_of(2)
    sharded = parameter(torch.ones(2), mesh, Shard(0))
    largest = DTensor.from_local(torch.ones(2), mesh, [Partial("max")])
    messages = []
    for call in (
        lambda: gradstep.clip_grad_norm_([sharded], 1.0, process_group=dist.group.WORLD),
        lambda: gradstep.clip_grad_value_([sharded], 1.0, process_group=mesh),
        lambda: gradstep.global_norm([sharded.grad, largest]),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            call()
        messages.append(str(caught.value))
    return messages


def test_what_would_count_twice_or_has_no_sum_is_refused() -> None:
    for group, kind, partial in on_ranks(2, refusals):
        assert group == (
            "process_group holds the ranks [0, 1], but a DTensor lies on [0, 1]: its entries "
            "would count more than once. Pass the group of ranks that stand at the same place of "
            "different stages, or none."
        )
        assert kind.startswith("process_group must be a ProcessGroup that this rank belongs to")
        assert "of type DeviceMesh" in kind
        assert partial == (
            "gradient number 1 has the placement Partial(max), but a gradient adds up: required "
            "are Shard, Replicate or Partial(sum). Redistribute it."
        )


def outside() -> str | None:
    p = parameter(torch.tensor([3.0, 4.0]), DeviceMesh("cpu", [0, 1]), Shard(0))
    if dist.get_rank() < 2:
        assert gradstep.clip_grad_norm_([p], 1.0) == 5
        return None
    with pytest.raises(ValueError, match=r"lies on the ranks \[0, 1\], got a call on rank 2"):
        gradstep.clip_grad_norm_([p], 1.0)
    return "raised"


def test_a_rank_outside_the_mesh_is_told_so() -> None:
    assert on_ranks(3, outside) == [None, None, "raised"]
