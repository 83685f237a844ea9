"""The contract of clipping across ranks: any split, any magnitude, stages, accelerators."""

import math
import os
import random
from fractions import Fraction
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

import gradstep
from gradstep import NonfiniteGradientError, _sharded
from gradstep._gradients import gradients_of

from . import oracle
from .sharded import Collectives, local, mesh_of, on_ranks, parameter, whole

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

DRAWS = 60
GATHER = "allgather"


def bits(parameters: list[nn.Parameter]) -> list[Tensor]:
    return [oracle.bits(local(p.grad)).clone() for p in parameters]


def same(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(map(torch.equal, one, other))


def drawn(draw: random.Random, meshes: list[Any]) -> list[nn.Parameter]:
    """Gradients of any dtype, magnitude and layout, the same on every rank."""
    parameters = []
    for _ in range(draw.randint(1, 4)):
        dtype = draw.choice(oracle.DTYPES)
        shape = draw.choice([(0,), (1,), (3,), (40, 3), (3000,), (2, 0), (7, 5, 2)])
        generator = torch.Generator().manual_seed(draw.randrange(1 << 30))
        values = torch.randn(shape, dtype=torch.float64, generator=generator)
        reach = {torch.float16: 3, torch.float64: 150}.get(dtype, 25)
        gradient = (values * 10.0 ** draw.randint(-reach, reach)).to(dtype)
        mesh = draw.choice([None, *meshes])
        if mesh is None:
            parameters.append(parameter(gradient))
            continue
        kinds = [Replicate(), *(Shard(d) for d in range(gradient.ndim))]
        placements = [draw.choice(kinds) for _ in range(mesh.ndim)]
        parameters.append(parameter(gradient, mesh, *placements))
        if mesh.ndim == 1 and draw.random() < 0.3 and math.prod(shape):
            summand = gradient * (0.75 if dist.get_rank() else 0.5)
            parameters[-1].grad = DTensor.from_local(summand, mesh, [Partial()])
    return parameters


def contract() -> list[float]:
    draw, meshes = random.Random(0), [mesh_of(2), mesh_of(2, 1), mesh_of(1, 2)]
    norms = []
    for _ in range(DRAWS):
        parameters = drawn(draw, meshes)
        wholes = [whole(p.grad) for p in parameters]
        start, versions = bits(parameters), [local(p.grad)._version for p in parameters]
        order = draw.choice([1, 2, 2, 2, 3, math.inf])
        norm = gradstep.clip_grad_norm_(parameters, math.inf, order)
        torch.testing.assert_close(norm, gradstep.global_norm(wholes, order), rtol=1e-6, atol=0)
        gradstep.clip_grad_norm_(parameters, norm, order)  # exactly at the bound
        assert [local(p.grad)._version for p in parameters] == versions
        norms.append(norm.item())
        bound = norm.item() * draw.uniform(1e-3, 0.99)
        if not 0 < bound < math.inf:
            continue
        gradstep.clip_grad_norm_(parameters, bound, order)
        clipped = bits(parameters)
        assert not same(start, clipped) or not any(map(torch.numel, start))
        if order == 2:
            assert oracle.square(whole(p.grad) for p in parameters) <= Fraction(bound) ** 2
        assert gradstep.clip_grad_norm_(parameters, bound, order) <= bound
        assert same(bits(parameters), clipped)
    return norms


def test_the_contract_holds_for_any_split() -> None:
    first, second = on_ranks(2, contract)
    assert first == second
    assert len(set(first)) > DRAWS / 2


def extremes() -> list[Any]:
    mesh, found = mesh_of(2), []
    for value, bound in ((1e20, 1.0), (1e-23, 1e-24), (3e38, 1e38)):
        p = parameter(torch.full((4,), value), mesh, Shard(0))
        norm = gradstep.clip_grad_norm_([p], bound)
        found.append((norm.item() / 2 / value, whole(p.grad).double().norm().item() / bound))
    wide = parameter(torch.full((4,), 1.5e308, dtype=torch.float64), mesh, Shard(0))
    assert gradstep.clip_grad_norm_([wide], 1.0) == math.inf  # no NaN, no infinity: no error
    found.append((1.0, whole(wide.grad).norm().item()))
    p = parameter(torch.full((4,), 1e20), mesh, Shard(0))
    torch.nn.utils.clip_grad_norm_([p], 1.0)
    return [*found, whole(p.grad).tolist()]


def test_norms_that_leave_float32_are_clipped_and_torchs_lose_everything() -> None:
    *found, torchs = on_ranks(2, extremes)[0]
    for norm, clipped in found:
        assert norm == pytest.approx(1, rel=1e-6)
        assert 1 - 1e-5 < clipped <= 1
    assert torchs == [0, 0, 0, 0]


def divided() -> None:
    tensors = [torch.arange(1.0, 6.0), torch.tensor([2.5])]
    sharded = [parameter(t.clone(), mesh_of(2), Shard(0)) for t in tensors]
    plain = oracle.parameters_with(*tensors)
    for bound in (math.inf, 0.25):
        norms = [gradstep.clip_grad_norm_(p, bound, divide_by=8.0) for p in (sharded, plain)]
        torch.testing.assert_close(*norms)
        for mine, expected in zip(sharded, plain, strict=True):
            torch.testing.assert_close(whole(mine.grad), expected.grad)


def test_division_and_clipping_share_a_write_across_ranks() -> None:
    on_ranks(2, divided)


def stages() -> list[Any]:
    """Three stages: 3, 4 and no gradient at all."""
    rank = dist.get_rank()
    own = [parameter(torch.tensor([3.0 + rank]))] if rank < 2 else []
    alone = [parameter(torch.tensor([3.0 + rank]))] if rank < 2 else []
    torch.nn.utils.clip_grad_norm_(alone, 1.0)
    with Collectives() as counted:
        norm = gradstep.clip_grad_norm_(own, 1.0, process_group=dist.group.WORLD)
    after = [p.grad.item() for p in own]
    gradstep.clip_grad_norm_(own, 1.0, process_group=dist.group.WORLD)
    assert [p.grad.item() for p in own] == after
    largest = gradstep.global_norm([p.grad for p in own], math.inf, process_group=dist.group.WORLD)
    return [norm.item(), after, largest.item(), counted.names, [p.grad.item() for p in alone]]


def test_stages_of_a_pipeline_clip_by_one_norm() -> None:
    first, second, third = on_ranks(3, stages)
    assert [r[0] for r in (first, second, third)] == [5, 5, 5]
    assert first[1] + second[1] + third[1] == pytest.approx([0.6, 0.8], rel=1e-5)
    assert first[2] == second[2] == third[2] == second[1][0]
    assert first[3] == [GATHER]
    assert first[4] + second[4] == pytest.approx([1, 1], rel=1e-5)  # torch: each stage by its own


def sharded_stages() -> list[Any]:
    """Two stages, in float32 and bfloat16, each on two ranks."""
    mesh = mesh_of(2, 2)
    stage, line = mesh["dp"].get_group(), mesh["tp"]
    first = dist.get_rank() < 2
    dtype = torch.float32 if first else torch.bfloat16
    gradient = torch.tensor([2.0, 2.0, 1.0] if first else [4.0, 0.0, 0.0, 0.0], dtype=dtype)
    p = parameter(gradient, line, Shard(0))
    with Collectives() as counted:
        norm = gradstep.clip_grad_norm_([("w", p)], 1.0, process_group=stage)
    clipped = whole(p.grad)
    before = local(p.grad)._version
    gradstep.clip_grad_norm_([("w", p)], 1.0, process_group=stage)
    assert local(p.grad)._version == before
    if dist.get_rank() == 3:
        local(p.grad)[0] = math.nan
    with pytest.raises(NonfiniteGradientError) as caught:
        gradstep.clip_grad_norm_([("w", p)], 1.0, process_group=stage)
    return [norm.item(), oracle.square([clipped]), counted.names, str(caught.value)]


def test_stages_may_be_sharded() -> None:
    results = on_ranks(4, sharded_stages)
    assert {norm for norm, *_ in results} == {5}
    total = results[0][1] + results[2][1]
    assert Fraction(0.98) <= total <= 1
    assert results[0][2] == [GATHER, GATHER]
    assert len({message for *_, message in results}) == 1
    assert results[0][3].startswith("on rank 3 the gradient of parameter w is not finite: 1 of 2 ")


def as_on_a_device() -> None:
    """The path of accelerators, on the CPU for its numbers."""
    mesh = mesh_of(2)

    def fresh() -> list[nn.Parameter]:
        torch.manual_seed(0)
        summed = parameter(torch.zeros(3), mesh, Replicate())
        summed.grad = DTensor.from_local(torch.randn(3), mesh, [Partial()])
        tensors = [torch.randn(5, 3).to(dtype) for dtype in oracle.DTYPES]
        sharded = [parameter(tensor, mesh, Shard(0)) for tensor in [*tensors, torch.randn(1)]]
        return [summed, parameter(torch.randn(4)), *sharded]

    for order in (0.5, 1, 2, 3, math.inf):
        for bound, divisor in ((0.5, 1.0), (1e9, 1.0), (1e9, 24.0)):
            ours, other = fresh(), fresh()
            gradients = gradients_of(ours)._replace(on_cpu=False)
            norm = _sharded.clip_norm_everywhere(gradients, None, bound, order, "leave", divisor)
            expected = gradstep.clip_grad_norm_(other, bound, order, divide_by=divisor)
            torch.testing.assert_close(norm, expected, rtol=1e-6, atol=0)
            for mine, theirs in zip(ours, other, strict=True):
                torch.testing.assert_close(whole(mine.grad), whole(theirs.grad))
    ours, other = fresh(), fresh()
    gradients = gradients_of(ours)._replace(on_cpu=False)
    _sharded.clip_value_everywhere(gradients, None, 0.2, "raise")
    gradstep.clip_grad_value_(other, 0.2)
    for mine, theirs in zip(ours, other, strict=True):
        assert torch.equal(whole(mine.grad), whole(theirs.grad))
        assert whole(mine.grad).abs().max() <= 0.2
    local(ours[3].grad).fill_(math.nan)
    before = bits(ours)
    norm = _sharded.clip_norm_everywhere(gradients, None, 0.1, 2, "leave", 1.0)
    _sharded.clip_value_everywhere(gradients, None, 0.1, "leave")
    assert norm.isnan()
    assert same(bits(ours), before)


def test_the_device_path_across_ranks_equals_that_of_the_cpu() -> None:
    on_ranks(2, as_on_a_device)
