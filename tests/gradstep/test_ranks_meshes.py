"""`updates` with tensor parallelism, and on meshes of two dimensions: who has other data?"""

import math
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    loss_parallel,
    parallelize_module,
)

from gradstep import Additive, CrossEntropy, NonfiniteGradientError, Update, updates

from .ranks import run_ranks
from .sharded import Net, both, fsdp, local, mesh_of, seeded, tensor_parallel, whole

Batches = list[tuple[Tensor, Tensor]]

COUNTS = [[3, 0, 5, 0], [40, 20, 7, 30]]  # supervised targets of each microbatch


def partly(model: nn.Module, mesh: DeviceMesh) -> nn.Module:
    """Tensor parallel but for a layer norm, whose plain parameters are the same on all ranks."""
    return parallelize_module(model, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})


def partly_both(model: nn.Module, mesh: DeviceMesh) -> nn.Module:
    """As `both`, but the layer norm lies on one dimension of the mesh, the rest on two."""
    return fsdp(partly(model, mesh["tp"]), mesh["dp"])


# how a model is laid out, on which mesh, and how many of its ranks in a row see the same data
LAYOUTS: dict[str, tuple[Any, tuple[int, ...], int]] = {
    "tensor": (tensor_parallel, (2,), 2),
    "tensor, plain norm": (partly, (2,), 2),
    "fsdp x tensor": (both, (2, 2), 2),
    "fsdp x tensor, plain norm": (partly_both, (2, 2), 2),
    "hybrid": (fsdp, (2, 2), 1),
}


def laid_out(how: str) -> nn.Module:
    build, sizes, _ = LAYOUTS[how]
    model: nn.Module = build(seeded(Net), mesh_of(*sizes))
    return model


def share(how: str, rank: int) -> int:
    """Which part of the data this rank sees."""
    return rank // LAYOUTS[how][2]


def microbatches(number: int, counts: list[int] | None = None) -> Batches:
    """The microbatches of a share: 40 rows each, of which some have a target."""
    generator = torch.Generator().manual_seed(number)
    batches = []
    for count in counts or COUNTS[number % 2]:
        targets = torch.randint(0, 8, (40,), generator=generator)
        targets[count:] = -100
        batches.append((torch.randn(40, 8, generator=generator, dtype=torch.float64), targets))
    return batches


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.5)


def train(rank: int, how: str, max_norm: float) -> tuple[list[Update], list[Tensor]]:
    model, batches = laid_out(how), microbatches(share(how, rank))
    records = updates(model, batches, sgd(model), accumulation_steps=2, max_norm=max_norm)
    return list(records), [whole(p) for p in model.parameters()]


def train_twice(rank: int, how: str) -> Any:
    return train(rank, how, 0.05), train(rank, how, math.inf)


def reference(shares: int, **options: Any) -> tuple[list[Update], list[Tensor]]:
    """The same data in one process and one model: a window is all that the ranks have in it."""
    model, records = seeded(Net), []
    optimizer, batches = sgd(model), [microbatches(number) for number in range(shares)]
    for start in (0, 2):
        window = [pair for own in batches for pair in own[start : start + 2]]
        inputs, targets = (torch.cat(tensors) for tensors in zip(*window, strict=True))
        records += updates(model, [(inputs, targets)], optimizer, accumulation_steps=1, **options)
    return records, [p.detach() for p in model.parameters()]


def twice(batch: Any) -> Tensor:
    return 2 * CrossEntropy().denominator(batch)


@pytest.mark.parametrize("how", LAYOUTS)
def test_every_layout_equals_one_process_with_all_data(how: str) -> None:
    world = math.prod(LAYOUTS[how][1])
    shares = world // LAYOUTS[how][2]
    expected = [reference(shares, max_norm=max_norm) for max_norm in (0.05, math.inf)]
    for outcome in run_ranks(world, train_twice, how, limit=30, patience=90):
        for (records, own), (ones, weights) in zip(outcome.get(), expected, strict=True):
            for mine, one in zip(records, ones, strict=True):
                assert mine.targets == one.targets
                assert mine.mean_loss == pytest.approx(one.mean_loss, rel=1e-12)
                assert mine.pre_clip_norm == pytest.approx(one.pre_clip_norm, rel=1e-12)
                assert mine.pre_clip_norm > 0.05
            for mine, theirs, start in zip(own, weights, seeded(Net).parameters(), strict=True):
                assert (mine - theirs).abs().max() < 1e-12
                assert (mine - start).abs().max() > 1e-4
    # what denominators added up over tensor-parallel ranks would have given
    _, wrong = reference(shares, max_norm=math.inf, objective=Additive(CrossEntropy(), twice))
    assert max((a - b).abs().max() for a, b in zip(weights, wrong, strict=True)) > 1e-3


def sharded_logits(model: nn.Module, batch: Any) -> Tensor:
    return nn.functional.cross_entropy(model(batch[0]), batch[1], reduction="sum")


def train_with_sharded_logits(rank: int) -> Any:
    """The last layer leaves each rank its classes, and the loss is a DTensor."""
    plan = {"up": ColwiseParallel(use_local_output=False)}
    model = nn.Sequential(seeded(Net).norm, parallelize_module(seeded(Net), mesh_of(2), plan).up)
    objective = Additive(sharded_logits, CrossEntropy().denominator)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with loss_parallel():  # around forward and backward
        return list(
            updates(model, microbatches(0), optimizer, accumulation_steps=2, objective=objective)
        )


def test_a_loss_over_sharded_classes_equals_that_of_one_process() -> None:
    model = nn.Sequential(seeded(Net).norm, seeded(Net).up)
    expected = list(updates(model, microbatches(0), sgd(model), accumulation_steps=2))
    for outcome in run_ranks(2, train_with_sharded_logits, limit=30, patience=90):
        for mine, one in zip(outcome.get(), expected, strict=True):
            assert mine.mean_loss == pytest.approx(one.mean_loss, rel=1e-12)
            assert mine.pre_clip_norm == pytest.approx(one.pre_clip_norm, rel=1e-12)


# windows


def refused(rank: int, how: str, batches: list[Batches]) -> Any:
    model = laid_out(how)
    before = [whole(p) for p in model.parameters()]
    with pytest.raises(ValueError, match="window") as raised:
        list(updates(model, batches[rank], sgd(model), accumulation_steps=2))
    assert all(p.grad is None for p in model.parameters())
    unmoved = all(torch.equal(whole(p), b) for p, b in zip(model.parameters(), before, strict=True))
    again = list(updates(model, microbatches(share(how, rank)), sgd(model), accumulation_steps=4))
    assert math.isfinite(again[0].pre_clip_norm)
    return str(raised.value), unmoved


def with_other_rows(batches: Batches) -> Batches:
    return [(rows + 1, targets) for rows, targets in batches]


OTHER_DATA = {
    "a window less": (microbatches(0)[:2], r"window 1 differ: \[2, 0\] microbatches"),
    "a microbatch less": (microbatches(0)[:3], r"window 1 differ: \[2, 1\] microbatches"),
    "other targets": (microbatches(0, [3, 1, 5, 0]), r"window 0 .* with \[3, 4\] targets in all"),
    "other rows": (with_other_rows(microbatches(0)), r"window 0 .* with \[3, 3\] targets in all"),
    "another order": (microbatches(0)[1::-1], r"window 0 differ: \[2, 2\] microbatches"),
}


@pytest.mark.parametrize("kind", OTHER_DATA)
def test_tensor_parallel_ranks_with_other_data_are_refused_alike(kind: str) -> None:
    batches, message = OTHER_DATA[kind]
    first, second = (
        outcome.get() for outcome in run_ranks(2, refused, "tensor", [microbatches(0), batches])
    )
    assert first == second
    assert "(tensor parallelism) need the same microbatches, but those of" in first[0]
    assert re.search(message, first[0])
    assert first[1] == ("window 0" in message)


def test_data_of_its_own_for_every_rank_of_a_mesh_is_refused() -> None:
    batches = [microbatches(rank) for rank in range(4)]
    messages = [outcome.get() for outcome in run_ranks(4, refused, "fsdp x tensor", batches)]
    assert len(set(messages)) == 1
    assert "differ: [2, 2, 2, 2] microbatches, with [3, 60, 3, 60] targets" in messages[0][0]


def test_shares_of_unequal_length_are_refused_and_may_be_filled() -> None:
    batches = [microbatches(number)[: 4 - number] for number in (0, 0, 1, 1)]
    for outcome in run_ranks(4, refused, "fsdp x tensor", batches):
        assert "window 1 has [2, 2, 1, 1] microbatches by rank" in outcome.get()[0]
    for rank, outcome in enumerate(run_ranks(4, filled, batches)):
        assert outcome.get() == [(2, 3 + 60), (2 - rank // 2, 5 + 7)]


def filled(rank: int, batches: list[Batches]) -> list[tuple[int, float]]:
    model = laid_out("fsdp x tensor")
    options: dict[str, Any] = {"accumulation_steps": 2, "tails": "empty"}
    records = updates(model, batches[rank], sgd(model), **options)
    return [(record.microbatches, record.targets) for record in records]


# what is not finite


def spoil(model: nn.Module, value: float, backward_pass: int) -> None:
    """Write into the shard of this rank, in one of its backward passes."""
    passes = []

    def hook(parameter: Tensor) -> None:
        passes.append(1)
        if len(passes) == backward_pass:
            local(parameter.grad)[0, 0] = value

    model.up.weight.register_post_accumulate_grad_hook(hook)


def with_a_spoiled_shard(rank: int, how: str) -> str:
    model = laid_out(how)
    if rank == 1:
        spoil(model, math.nan, 1)
    before = [whole(p) for p in model.parameters()]
    with pytest.raises(NonfiniteGradientError) as raised:
        list(updates(model, microbatches(share(how, rank)), sgd(model), accumulation_steps=4))
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(whole(p), b) for p, b in zip(model.parameters(), before, strict=True))
    return str(raised.value)


@pytest.mark.parametrize("how", ["tensor", "fsdp x tensor"])
def test_a_nan_in_one_shard_stops_all_ranks_and_is_named(how: str) -> None:
    for outcome in run_ranks(math.prod(LAYOUTS[how][1]), with_a_spoiled_shard, how):
        assert re.search(r"on rank 1 .*up\.weight", outcome.get())
        assert outcome.seconds < 20


def poisoned(rank: int) -> str:
    """The second share has a loss without a derivative."""
    model, number = laid_out("fsdp x tensor"), rank // 2
    loss: Any = CrossEntropy()
    if number == 1:
        loss = lambda model, batch: (0 * model(batch[0])).square().sum().sqrt()  # noqa: E731
    objective = Additive(loss, CrossEntropy().denominator)
    options: dict[str, Any] = {"accumulation_steps": 2, "objective": objective}
    with pytest.raises(NonfiniteGradientError) as raised:
        list(updates(model, microbatches(number), sgd(model), **options))
    return " ".join(raised.value.__notes__)


def test_a_gradient_that_is_not_finite_names_all_ranks_of_its_share() -> None:
    for outcome in run_ranks(4, poisoned):
        assert "it came from ranks 2, 3" in outcome.get()


def train_with_scaler(rank: int, how: str) -> Any:
    """In the second of three windows a shard of rank 1 becomes infinite."""
    model = laid_out(how)
    if rank == 1:
        spoil(model, math.inf, 2)
    # torch's scaler looks for infinities where its first gradient lies, which is a copy here
    parameters = sorted(model.parameters(), key=lambda p: p is not model.down.bias)
    optimizer = torch.optim.SGD(parameters, lr=0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**4)
    batches = microbatches(share(how, rank), [9, 5, 7])
    run = updates(model, batches, optimizer, scheduler, accumulation_steps=1, scaler=scaler)
    accepted = [record.accepted for record in run]
    return accepted, scaler.get_scale(), scheduler.last_epoch, [whole(p) for p in parameters]


@pytest.mark.parametrize("how", ["tensor", "fsdp x tensor"])
def test_an_infinity_in_one_shard_skips_the_step_on_all_ranks(how: str) -> None:
    outcomes = [o.get() for o in run_ranks(math.prod(LAYOUTS[how][1]), train_with_scaler, how)]
    for accepted, scale, clock, weights in outcomes:
        assert (accepted, scale, clock) == ([True, False, True], 2.0**3, 2)
        torch.testing.assert_close(weights, outcomes[0][3], rtol=0, atol=0)
