"""A sharded model, clipped as a whole: torchrun --nproc-per-node 2 snippets/fsdp2_loop.py."""

import shutil
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

from gradstep import Clocks, MeanSquaredError, TrainingState, updates


# --8<-- [start:build]
def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).double()


def shard(model):
    for part in (model[0], model[2], model):
        fully_shard(part)
    return model


def microbatches(ranks):
    torch.manual_seed(1)
    rows, wanted = 3 * torch.randn(128, 4).double(), 3 * torch.randn(128, 2).double()
    pairs = list(zip(rows.split(16), wanted.split(16), strict=True))
    return [pairs[4 * rank + number] for rank in ranks for number in range(4)]


# --8<-- [end:build]


# --8<-- [start:train]
def train(model, batches, k):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    options = {"objective": MeanSquaredError(), "accumulation_steps": k, "max_norm": 0.5}
    return optimizer, list(updates(model, batches, optimizer, **options))


# --8<-- [end:train]


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if world != 2:
        raise SystemExit(f"this program is written for 2 ranks, got {world}")

    sharded, whole = shard(build()), build()
    optimizer, records = train(sharded, microbatches([rank]), k=2)

    # one process, unsharded, with the data of both ranks: 4 microbatches in a window
    first, second = microbatches([0]), microbatches([1])
    _, expected = train(whole, first[:2] + second[:2] + first[2:] + second[2:], k=4)
    for mine, one in zip(records, expected, strict=True):
        assert abs(mine.pre_clip_norm - one.pre_clip_norm) < 1e-12 < one.pre_clip_norm
    for shards, full, start in zip(
        sharded.parameters(), whole.parameters(), build().parameters(), strict=True
    ):
        assert (shards.full_tensor() - full).abs().max() < 1e-9  # AdamW divides by roots
        assert (full - start).abs().max() > 0.01

    # one directory for all ranks; each writes its shards
    clocks, folder = Clocks(), [tempfile.mkdtemp() if rank == 0 else ""]
    for record in records:
        clocks.count(record)
    dist.broadcast_object_list(folder)
    state = TrainingState(model=sharded, optimizer=optimizer, clocks=clocks)
    state.save(f"{folder[0]}/state")
    before = [p.full_tensor().clone() for p in sharded.parameters()]
    with torch.no_grad():
        for p in sharded.parameters():
            p.zero_()
    state.load(f"{folder[0]}/state")
    dist.barrier()  # nobody reads any more
    assert all(
        torch.equal(p.full_tensor(), b) for p, b in zip(sharded.parameters(), before, strict=True)
    )

    if rank == 0:
        shutil.rmtree(folder[0])
        for r in records:
            print(f"window {r.window}: pre-clip norm {r.pre_clip_norm:.3f}, mean {r.mean_loss:.3f}")
        print("shards on 2 ranks: norms and weights of one process, and saved")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
