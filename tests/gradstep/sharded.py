"""Real processes for tests: forked ranks with gloo between them, and models sharded on them."""

import faulthandler
import os
import pickle
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # what sharding would import in each rank anew
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.utils._python_dispatch import TorchDispatchMode

LIMIT = 40  # seconds for all ranks of a test; a machine with work beside it is slow

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # no look-up of the host's name


def on_ranks(world: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What `function` returned on each of `world` ranks; an error where one has failed."""
    with tempfile.TemporaryDirectory() as name:
        ranks = {_fork(rank, world, Path(name), function, arguments): rank for rank in range(world)}
        endings = _endings(ranks)
        results = [_result(Path(name, str(rank)), endings.get(rank)) for rank in range(world)]
    faults = [result for result in results if isinstance(result, _Failure)]
    if faults:
        raise AssertionError("\n".join(fault.text for fault in faults))
    return results


class _Failure:
    def __init__(self, text: str) -> None:
        self.text = text


def _fork(rank: int, world: int, folder: Path, function: Callable[..., Any], arguments: Any) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork where threads exist
        pid = os.fork()
    if pid:
        return pid
    try:
        # whoever hangs says where, and ends, also where the parent has been killed
        faulthandler.dump_traceback_later(LIMIT, exit=True, file=sys.__stderr__)
        torch.set_num_threads(1)  # the threads of the parent are not here
        dist.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=world)
        result = function(*arguments)
        (folder / str(rank)).write_bytes(pickle.dumps(result))
        dist.barrier()
        os._exit(0)
    except BaseException as error:
        import traceback

        text = f"rank {rank}: " + "".join(traceback.format_exception(error))
        (folder / str(rank)).write_bytes(pickle.dumps(_Failure(text)))
    finally:
        os._exit(1)


def _endings(ranks: dict[int, int]) -> dict[int, int]:
    """How each rank ended. Once one has failed the others, which may wait for it, are killed."""
    endings: dict[int, int] = {}
    try:
        while len(endings) < len(ranks):
            pid, status = os.wait()
            if pid in ranks:
                endings[ranks[pid]] = os.waitstatus_to_exitcode(status)
                if status:
                    break
    finally:
        for pid, rank in ranks.items():
            if rank not in endings:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    return endings


def _result(file: Path, ending: int | None) -> Any:
    if ending is not None and file.exists():
        return pickle.loads(file.read_bytes())
    return _Failure(f"{file.name}: ended with {ending}" if ending is not None else "stopped")


class Collectives(TorchDispatchMode):
    """Names of the collectives that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace in ("c10d", "_c10d_functional"):
            self.names.append(func._opname.strip("_"))
        return func(*args, **(kwargs or {}))


class Net(nn.Module):
    """Three kinds of layers, of sizes that two and four ranks divide."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.up = nn.Linear(8, 16)
        self.down = nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(torch.tanh(self.up(self.norm(x))))


class Uneven(nn.Module):
    """Layers that leave shards of other sizes to the last rank, some of them empty."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(8, 7)
        self.down = nn.Linear(7, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(torch.tanh(self.up(x)))


def rows() -> Tensor:
    """The same input on every rank."""
    return torch.randn(8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


def seeded(kind: Callable[[], nn.Module]) -> nn.Module:
    """A model of float64 with the same weights on every rank."""
    torch.manual_seed(0)
    return kind().double()


def fsdp(model: nn.Module, mesh: DeviceMesh) -> nn.Module:
    """FSDP2, each layer by itself."""
    # the output of a linear layer that tensor parallelism has split is a view; nobody writes to it
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor")
    for layer in model.children():
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def tensor_parallel(model: nn.Module, mesh: DeviceMesh) -> nn.Module:
    """The usual plan; the gradient of a layer norm is then a `Partial`."""
    plan = {
        "norm": SequenceParallel(sequence_dim=0),
        "up": ColwiseParallel(input_layouts=Shard(0)),
        "down": RowwiseParallel(),
    }
    split = PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Shard(0))
    parallelize_module(parallelize_module(model, mesh, plan), mesh, split)
    return model


def both(model: nn.Module, mesh: DeviceMesh) -> nn.Module:
    """Tensor parallel within rows of a mesh, FSDP2 over them."""
    return fsdp(tensor_parallel(model, mesh["tp"]), mesh["dp"])


def trained(model: nn.Module) -> nn.Module:
    """The model with the gradient of the same loss, wherever it lies."""
    model(rows()).square().sum().backward()
    return model


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor, on every rank; a copy."""
    full = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
    return full.detach().clone()


def local(tensor: Tensor) -> Tensor:
    """What this rank holds of it."""
    with torch.no_grad():  # not a view
        return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def gradients(model: nn.Module) -> dict[str, Tensor]:
    """All gradients, whole."""
    return {name: whole(p.grad) for name, p in model.named_parameters()}


def mesh_of(*sizes: int) -> DeviceMesh:
    """A mesh of all ranks, with the names that `both` expects."""
    return init_device_mesh("cpu", sizes, mesh_dim_names=("dp", "tp")[: len(sizes)])


def parameter(gradient: Tensor, mesh: DeviceMesh | None = None, *placements: Any) -> nn.Parameter:
    """A parameter with a gradient that lies as the placements say; a plain one without a mesh."""
    if mesh is not None:
        gradient = distribute_tensor(gradient, mesh, placements)
    found = nn.Parameter(torch.zeros_like(gradient))
    found.grad = gradient
    return found
