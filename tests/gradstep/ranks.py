"""Run a function by several real processes, joined by gloo, and see how each of them ended."""

import multiprocessing
import pickle
import socket
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# forked from a process that has only imported: no threads to inherit, no seconds of an import
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["pytest", "gradstep", "torch._dynamo", "torch.distributed.fsdp"])


@dataclass
class Outcome:
    """How a rank ended: with a value, an error, a signal (negative exit code), or not at all."""

    value: Any = None
    error: BaseException | None = None
    trace: str = ""
    seconds: float = 0.0
    exitcode: int | None = None

    def get(self) -> Any:
        """The value; where there is none, what happened instead."""
        if self.error is not None or self.exitcode != 0:
            raise AssertionError(f"exit code {self.exitcode}\n{self.trace}")
        return self.value


def run_ranks(
    world: int,
    function: Callable[..., Any],
    *args: Any,
    limit: float = 5.0,
    patience: float = 20.0,
    store: str = "file",
) -> list[Outcome]:
    """Call `function(rank, *args)` in `world` processes; `limit` is their group's time limit.

    Whoever still runs after `patience` seconds is killed and has no exit code; nothing outlives
    the call. With `store="tcp"` rank 0 holds the store, as without torchrun's agent.
    """
    with TemporaryDirectory() as folder:
        place = f"file://{folder}/store" if store == "file" else f"tcp://127.0.0.1:{_free_port()}"
        job = (folder, place, world, limit, function, args)
        processes = [
            CONTEXT.Process(target=_rank, args=(rank, *job), daemon=True) for rank in range(world)
        ]
        for process in processes:
            process.start()
        try:
            deadline = time.monotonic() + patience
            for process in processes:
                process.join(max(0.0, deadline - time.monotonic()))
            return [_outcome(Path(folder, str(r)), p) for r, p in enumerate(processes)]
        finally:
            for process in processes:
                process.kill()
                process.join()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _outcome(file: Path, process: BaseProcess) -> Outcome:
    outcome = pickle.loads(file.read_bytes()) if file.exists() else Outcome()
    outcome.exitcode = process.exitcode
    return outcome  # type: ignore[no-any-return]


def _rank(
    rank: int,
    folder: str,
    place: str,
    world: int,
    limit: float,
    function: Callable[..., Any],
    args: tuple[Any, ...],
) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", place, timedelta(seconds=limit), world_size=world, rank=rank)
    dist.barrier()
    start, outcome = time.monotonic(), Outcome()
    try:
        outcome.value = function(rank, *args)
    except BaseException as error:
        outcome.error, outcome.trace = error, traceback.format_exc()
    outcome.seconds = time.monotonic() - start
    Path(folder, str(rank)).write_bytes(pickle.dumps(outcome))
    if outcome.error is None:
        dist.destroy_process_group()
