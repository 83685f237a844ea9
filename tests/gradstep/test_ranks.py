"""`updates` by several real processes: one denominator, one reduction, one decision."""

import itertools
import math
import re
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import GradBucket
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.futures import Future
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

from gradstep import Additive, CrossEntropy, Update, updates

from .ranks import run_ranks

Batches = list[tuple[Tensor, Tensor]]
Counts = list[list[int]]  # supervised targets of each microbatch, by rank

UNEQUAL = [[3, 0, 5, 0], [40, 20, 7, 30]]  # 8 and 97
FOUR = [[1, 0], [5, 9], [0, 0], [2, 30]]


def small_model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)
    ).double()


def batches_of(counts: list[int], seed: int) -> Batches:
    """Microbatches of 40 rows, of which `counts` have a target."""
    generator = torch.Generator().manual_seed(seed)
    batches = []
    for count in counts:
        targets = torch.randint(0, 3, (40,), generator=generator)
        targets[count:] = -100
        batches.append((torch.randn(40, 4, generator=generator, dtype=torch.float64), targets))
    return batches


def wrap(model: torch.nn.Module, how: str) -> torch.nn.Module:
    if how == "ddp":
        return DistributedDataParallel(model)
    if how == "tensor":  # then all ranks need the same data
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        return parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    return fully_shard(model)


def full(tensor: Tensor) -> Tensor:
    return (tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor).detach()


def train(rank: int, how: str, counts: Counts, k: int, options: dict[str, Any]) -> Any:
    model = wrap(small_model(), how)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    batches = batches_of(counts[rank], seed=rank)
    records = list(updates(model, batches, optimizer, accumulation_steps=k, **options))
    return records, [full(p) for p in model.parameters()]


def reference(counts: Counts, k: int) -> tuple[list[Update], list[Tensor]]:
    """The same data in one process: a window is everything that the ranks have in it."""
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    batches = [batches_of(c, seed=rank) for rank, c in enumerate(counts)]
    records = []
    for start in range(0, max(map(len, counts)), k):
        parts = [pair for own in batches for pair in own[start : start + k]]
        inputs, targets = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
        records += updates(model, [(inputs, targets)], optimizer, accumulation_steps=1)
    return records, [p.detach() for p in model.parameters()]


@pytest.mark.parametrize("how", ["ddp", "fsdp2"])
@pytest.mark.parametrize("counts", [UNEQUAL, FOUR], ids=["2 ranks", "4 ranks"])
def test_unequal_ranks_equal_one_process_with_all_data(how: str, counts: Counts) -> None:
    expected, weights = reference(counts, 2)
    for outcome in run_ranks(len(counts), train, how, counts, 2, {}):
        records, own = outcome.get()
        for mine, one in zip(records, expected, strict=True):
            assert mine.targets == one.targets
            assert mine.mean_loss == pytest.approx(one.mean_loss, rel=1e-12)
            assert mine.pre_clip_norm == pytest.approx(one.pre_clip_norm, rel=1e-12)
            assert mine.accepted
        for mine, theirs, start in zip(own, weights, small_model().parameters(), strict=True):
            assert (mine - theirs).abs().max() < 1e-12
            assert (mine - start).abs().max() > 1e-3


# how often gradients travel, and what the usual mistakes would have given


class Scatters(TorchDispatchMode):
    """Counts FSDP2's reductions."""

    calls = 0

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += op is torch.ops.c10d._reduce_scatter_base_.default
        return op(*args, **(kwargs or {}))


def count_reductions(rank: int, how: str) -> list[int]:
    """Reductions of gradients in each window of three microbatches."""
    model = wrap(small_model(), how)
    buckets = []

    def hook(state: Any, bucket: GradBucket) -> Future[Tensor]:
        buckets.append(bucket.index())
        return allreduce_hook(state, bucket)

    if how == "ddp":
        model.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    run = updates(model, batches_of([3] * 9, rank), optimizer, accumulation_steps=3)
    totals = [0]
    with Scatters() as scatters:
        for _ in run:
            totals.append(scatters.calls + len(buckets))
    return [after - before for before, after in itertools.pairwise(totals)]


def test_ddp_reduces_each_bucket_once_in_a_window() -> None:
    for outcome in run_ranks(2, count_reductions, "ddp"):
        assert outcome.get() == [1, 1, 1]  # the model is one bucket


def buckets_by_window(rank: int) -> list[list[int]]:
    """The buckets that are reduced in each window of three microbatches, of 1.3 MB a layer."""
    layers = (torch.nn.Linear(4, 400), *(torch.nn.Linear(400, 400) for _ in range(3)))
    model = DistributedDataParallel(torch.nn.Sequential(*layers).double(), bucket_cap_mb=1)
    windows: list[list[int]] = [[]]

    def hook(state: Any, bucket: GradBucket) -> Future[Tensor]:
        windows[-1].append(bucket.index())
        return allreduce_hook(state, bucket)

    model.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in updates(model, batches_of([3] * 9, rank), optimizer, accumulation_steps=3):
        windows.append([])
    return windows[:-1]


def test_several_buckets_are_reduced_once_each_in_a_window() -> None:
    for outcome in run_ranks(2, buckets_by_window):
        _, second, third = outcome.get()  # DDP lays its buckets out in the first
        assert second == third == list(range(len(second)))
        assert len(second) > 2


def test_fsdp2_reduces_each_part_once_in_a_window() -> None:
    for outcome in run_ranks(2, count_reductions, "fsdp2"):
        assert outcome.get() == [2, 2, 2]  # the model is two layers


def gradients_by_hand(rank: int) -> dict[str, Tensor]:
    """The gradient of a window of all microbatches under DDP, divided in four ways."""
    batches = batches_of(UNEQUAL[rank], rank)
    local = sum(int(y.ne(-100).sum()) for _, y in batches)
    total = sum(map(sum, UNEQUAL))
    divisors = {
        "right": total / 2,
        "average of local means": local,
        "divided by the local count, summed": local / 2,
        "forgot the number of ranks": total,
    }
    gradients = {}
    for name, divisor in divisors.items():
        model = wrap(small_model(), "ddp")
        for number, (inputs, targets) in enumerate(batches):
            with nullcontext() if number == len(batches) - 1 else model.no_sync():
                loss = functional.cross_entropy(model(inputs), targets, reduction="sum")
                (loss / divisor).backward()
        gradients[name] = torch.cat([p.grad.flatten() for p in model.parameters()])
    return gradients


class Kept(torch.optim.SGD):
    """Keeps the gradients that it was to step with."""

    def step(self, closure: Any = None) -> None:
        groups = [p.grad for p in self.param_groups[0]["params"]]
        self.kept = torch.cat([full(g).flatten() for g in groups])


def gradient_of_updates(rank: int, how: str) -> Tensor:
    model = wrap(small_model(), how)
    optimizer = Kept(model.parameters(), lr=0.5)
    batches = batches_of(UNEQUAL[rank], rank)
    list(updates(model, batches, optimizer, accumulation_steps=4, max_norm=math.inf))
    return optimizer.kept


@pytest.mark.parametrize("how", ["ddp", "fsdp2"])
def test_gradient_is_that_of_all_data_and_the_wrong_ways_are_not(how: str) -> None:
    model = small_model()
    parts = [pair for r, counts in enumerate(UNEQUAL) for pair in batches_of(counts, r)]
    inputs, targets = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    functional.cross_entropy(model(inputs), targets).backward()
    exact = torch.cat([p.grad.flatten() for p in model.parameters()])
    for outcome in run_ranks(2, gradient_of_updates, how):
        assert (outcome.get() - exact).abs().max() < 1e-12
    for outcome in run_ranks(2, gradients_by_hand):
        by_hand = outcome.get()
        assert (by_hand.pop("right") - exact).abs().max() < 1e-12
        for name, gradient in by_hand.items():
            assert (gradient - exact).abs().max() > 0.01, name


# the loss scale


def train_with_scaler(rank: int, how: str, scale: float, spike: int) -> Any:
    """Three windows; in the second one, a row of rank `spike` overflows float16."""
    torch.manual_seed(0)
    model = wrap(torch.nn.Sequential(torch.nn.Linear(4, 3)), how)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    batches = [(x.float(), y) for x, y in batches_of([9, 5] * 3, rank)]
    if rank == spike:
        batches[2][0][0] *= 3e4
    options = {"scaler": scaler, "autocast": torch.float16, "accumulation_steps": 2}
    records = list(updates(model, batches, optimizer, scheduler, **options))
    weights = [full(p) for p in model.parameters()]
    return records, weights, scaler.get_scale(), scheduler.last_epoch


@pytest.mark.parametrize("how", ["ddp", "fsdp2"])
def test_an_overflow_on_one_rank_skips_the_step_on_all(how: str) -> None:
    first, second = (o.get() for o in run_ranks(2, train_with_scaler, how, 2.0**14, 1))
    for records, _, scale, clock in (first, second):
        assert [record.accepted for record in records] == [True, False, True]
        assert (scale, clock) == (2.0**13, 2)
    assert [r.mean_loss for r in first[0]] == [r.mean_loss for r in second[0]]
    torch.testing.assert_close(first[1], second[1], rtol=0, atol=0)


def train_with_unequal_scales(rank: int) -> str:
    with pytest.raises(ValueError, match="loss scale must be the same") as raised:
        train_with_scaler(rank, "ddp", 2.0 ** (10 + rank), -1)
    return str(raised.value)


def test_unequal_loss_scales_are_refused_on_every_rank() -> None:
    for outcome in run_ranks(2, train_with_unequal_scales):
        assert "got [1024, 2048] by rank in window 0" in outcome.get()


# windows and tails


def errors_of(rank: int, how: str, counts: Counts, k: int, options: dict[str, Any]) -> Any:
    """The error of a run, the windows before it, and whether training can go on."""
    model = wrap(small_model(), how)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    batches = batches_of(counts[rank], seed=rank)
    done = 0
    try:
        for _ in updates(model, batches, optimizer, accumulation_steps=k, **options):
            done += 1
    except (ValueError, FloatingPointError) as error:
        assert all(p.grad is None for p in model.parameters())
        again = list(updates(model, batches_of([4], rank), optimizer, accumulation_steps=1))
        assert again[0].targets == 4 * len(counts)
        return type(error), str(error), done, [full(p) for p in model.parameters()]
    raise AssertionError("no error")


REFUSED = {
    "short by a microbatch": ([[3] * 4, [3] * 3], r"window 1 has \[2, 1\] microbatches by rank"),
    "short by a window": ([[3] * 4, [3] * 2], r"window 1 has \[2, 0\] microbatches by rank"),
    "all ignored": (
        [[3, 3, 0, 0], [3, 3, 0, 0]],
        r"window 1 has no supervised target: .* up to 0 \(\[0, 0\] by rank\)",
    ),
}


@pytest.mark.parametrize("how", ["ddp", "fsdp2"])
@pytest.mark.parametrize("kind", REFUSED)
def test_ranks_that_cannot_go_on_raise_alike_and_can_start_again(how: str, kind: str) -> None:
    counts, message = REFUSED[kind]
    first, second = (o.get() for o in run_ranks(2, errors_of, how, counts, 2, {}))
    assert first[:3] == second[:3]
    assert (first[0], first[2]) == (ValueError, 1)
    assert re.search(message, first[1])
    torch.testing.assert_close(first[3], second[3], rtol=0, atol=0)


@pytest.mark.parametrize("how", ["ddp", "fsdp2"])
@pytest.mark.parametrize("counts", [[[9] * 5, [4] * 2], [[3], [1, 0, 7, 5]]], ids=str)
def test_empty_tails_equal_one_process_with_all_data(how: str, counts: Counts) -> None:
    expected, weights = reference(counts, 2)
    for rank, outcome in enumerate(run_ranks(2, train, how, counts, 2, {"tails": "empty"})):
        records, own = outcome.get()
        assert [r.targets for r in records] == [r.targets for r in expected]
        assert sum(r.microbatches for r in records) == len(counts[rank])
        for mine, one in zip(records, expected, strict=True):
            assert mine.mean_loss == pytest.approx(one.mean_loss, rel=1e-12)
        for mine, theirs in zip(own, weights, strict=True):
            assert (mine - theirs).abs().max() < 1e-12


def test_a_rank_without_any_data_cannot_contribute_emptiness() -> None:
    outcomes = run_ranks(2, errors_of, "ddp", [[3], []], 1, {"tails": "empty"})
    for outcome in outcomes:
        assert "[1, 0] microbatches by rank, and rank 1 never had one" in outcome.get()[1]


# what is not finite


def poisoned(rank: int, how: str, kind: str) -> Any:
    model = wrap(small_model(), how)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    batches = batches_of([3, 4], rank)
    objective: Any = CrossEntropy()
    if rank == 1 and kind == "loss":
        batches[0][0][0] = math.nan
    if rank == 1 and kind == "gradient":
        root = lambda model, batch: (0 * model(batch[0])).square().sum().sqrt()  # noqa: E731
        objective = Additive(root, lambda batch: 3)
    weights = list(model.parameters())
    before = [full(p).clone() for p in weights]
    with pytest.raises(FloatingPointError) as raised:
        list(updates(model, batches, optimizer, accumulation_steps=2, objective=objective))
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(full(p), b) for p, b in zip(weights, before, strict=True))
    again = list(updates(model, batches_of([4], rank), optimizer, accumulation_steps=1))
    assert math.isfinite(again[0].pre_clip_norm)
    return "\n".join([str(raised.value), *raised.value.__notes__])


@pytest.mark.parametrize("how", ["ddp", "fsdp2"])
def test_a_loss_that_is_not_finite_names_its_rank_on_every_rank(how: str) -> None:
    for outcome in run_ranks(2, poisoned, how, "loss"):
        assert "loss sum of window 0, rank 1, microbatch 0 is nan" in outcome.get()


@pytest.mark.parametrize("how", ["ddp", "fsdp2"])
def test_a_gradient_that_is_not_finite_names_its_rank_on_every_rank(how: str) -> None:
    for outcome in run_ranks(2, poisoned, how, "gradient"):
        assert re.search(r"gradient of parameter .*0\.weight is not finite", outcome.get())
        assert "it came from rank 1" in outcome.get()


# who takes part


def alone(rank: int) -> list[float]:
    """A plain model exchanges nothing, and DDP of one rank is that rank."""
    single = dist.new_subgroups(1)[0]
    targets = []
    for model in (small_model(), DistributedDataParallel(small_model(), process_group=single)):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        run = updates(model, batches_of([3 + rank] * 2, rank), optimizer, accumulation_steps=2)
        targets += [record.targets for record in run]
    return targets


def test_a_plain_model_and_a_group_of_one_stay_alone() -> None:
    first, second = run_ranks(2, alone)
    assert (first.get(), second.get()) == ([6, 6], [8, 8])


def in_subgroups(rank: int) -> float:
    group = dist.new_subgroups(2)[0]
    model = DistributedDataParallel(small_model(), process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (record,) = updates(model, batches_of([1 + rank], rank), optimizer, accumulation_steps=1)
    return record.targets


def test_the_ranks_are_those_of_the_wrapper() -> None:
    assert [o.get() for o in run_ranks(4, in_subgroups)] == [3, 3, 7, 7]


def refused(rank: int, kind: str) -> str:
    model = small_model()
    if kind == "first":
        model = FullyShardedDataParallel(model, device_id=torch.device("cpu"))
    elif kind == "outside":
        fully_shard(model[0])
    else:
        alone = init_device_mesh("cpu", (2, 1), mesh_dim_names=("a", "b"))["b"]
        fully_shard(model[0], mesh=alone)
        fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises((ValueError, TypeError)) as raised:
        list(updates(model, batches_of([3], rank), optimizer, accumulation_steps=1))
    return str(raised.value)


def test_parameters_that_no_rank_would_reduce_are_refused() -> None:
    for outcome in run_ranks(2, refused, "outside"):
        assert "parameter 2.weight is outside of the model's wrapped parts" in outcome.get()


def test_parts_over_other_ranks_are_refused() -> None:
    for outcome in run_ranks(2, refused, "groups"):
        assert "parts are wrapped over different process groups" in outcome.get()


def test_the_first_fsdp_is_refused() -> None:
    for outcome in run_ranks(2, refused, "first"):
        assert "is wrapped by FullyShardedDataParallel" in outcome.get()


def test_unknown_tails_are_refused() -> None:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wrong: Any = "drop"
    with pytest.raises(ValueError, match="tails must be 'raise' or 'empty', got 'drop'"):
        updates(model, [], optimizer, accumulation_steps=1, tails=wrong)
