"""Two ranks, unequal targets, one gradient: torchrun --nproc-per-node 2 snippets/ddp_loop.py."""

from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from gradstep import clip_grad_norm_, updates, windows

# --8<-- [start:data]
VALID = [[3, 0, 5, 0], [40, 20, 7, 30]]  # supervised targets of each microbatch, by rank


def microbatches(rank, valid=VALID):
    generator, batches = torch.Generator().manual_seed(rank), []
    for count in valid[rank]:
        labels = torch.randint(3, (40,), generator=generator)
        labels[count:] = -100
        rows = torch.randn(40, 4, generator=generator, dtype=torch.float64)
        batches.append((rows, labels))
    return batches


def build():
    torch.manual_seed(0)
    return nn.Linear(4, 3).double()


# --8<-- [end:data]


# --8<-- [start:loop]
def train(model, batches, optimizer, scheduler, k, max_norm):
    world = dist.get_world_size()
    lengths = [0] * world
    dist.all_gather_object(lengths, len(batches))
    if len(set(lengths)) > 1:  # every rank knows, so every rank raises
        raise ValueError(f"all ranks need equally many microbatches, got {lengths} by rank")
    for window in windows(batches, k):
        total = torch.stack([(y != -100).sum() for _, y in window]).sum()
        dist.all_reduce(total)  # the denominator, before the first forward
        if total == 0:
            raise ValueError("no rank has a supervised target in this window")
        optimizer.zero_grad(set_to_none=True)
        for number, (x, y) in enumerate(window):
            last = number == len(window) - 1
            with nullcontext() if last else model.no_sync():  # around forward and backward
                loss_sum = cross_entropy(model(x), y, reduction="sum")
                (loss_sum * world / total).backward()
        clip_grad_norm_(model.parameters(), max_norm)  # complete, and the same on every rank
        optimizer.step()
        scheduler.step()


# --8<-- [end:loop]


def setting(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.9)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    shares = [microbatches(r % 2) for r in range(world)]

    by_hand, by_updates = (DistributedDataParallel(build()) for _ in range(2))
    alone = build()
    train(by_hand, shares[rank], *setting(by_hand), k=2, max_norm=0.5)
    options = {"accumulation_steps": 2, "max_norm": 0.5}
    records = list(updates(by_updates, shares[rank], *setting(by_updates), **options))

    # one process with the data of all ranks: each window as one batch
    parts = [[pair for s in shares for pair in s[i : i + 2]] for i in (0, 2)]
    whole = [tuple(map(torch.cat, zip(*part, strict=True))) for part in parts]
    list(updates(alone, whole, *setting(alone), accumulation_steps=1, max_norm=0.5))

    assert (alone.weight - build().weight).norm() > 0.1
    for model in (by_hand, by_updates):
        assert (model.module.weight - alone.weight).abs().max() < 1e-12
    if rank == 0:
        for r in records:
            print(f"window {r.window}: {r.targets} targets, mean loss {r.mean_loss:.3f}")
        print(f"{world} ranks, by hand and by updates: the weights of one process")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
