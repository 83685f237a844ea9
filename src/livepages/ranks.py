"""Run one block by several real processes: `python -m livepages.ranks FOLDER`.

The folder holds `job.json`; every rank leaves its output and how it ended there. torch is
loaded once, before the ranks are forked from a process that has computed nothing yet (a fork
after a multithreaded matmul can hang). The launcher lives in its own process group and kills
it when its time is over, when its parent is gone (stdin ends), or when the last rank ended.
"""

import faulthandler
import importlib
import json
import linecache
import os
import select
import signal
import sys
import time
import warnings
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

from livepages.failures import failure

GRACE = 2.0  # seconds for the other ranks to notice that one has failed
POLL = 0.01
NOTE = 0.2  # seconds to write down a stack


def main(folder: Path) -> None:
    """Fork the ranks, wait for them, write down how each process ended, kill what is left."""
    job = json.loads((folder / "job.json").read_text())
    importlib.import_module("torch.distributed")
    ranks = {_fork(job, rank, folder): rank for rank in range(job["world"])}
    endings = _watch(ranks, time.monotonic() + job["timeout"])
    (folder / "endings.json").write_text(json.dumps(endings))
    os.killpg(0, signal.SIGKILL)


def _fork(job: dict[str, Any], rank: int, folder: Path) -> int:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = _run_rank(job, rank, folder)
        finally:
            os._exit(status)
    return pid


def _watch(ranks: dict[int, int], deadline: float) -> dict[int, str]:
    """Wait until every rank ended; say how: "exit 0", "signal 9" or "stopped"."""
    endings: dict[int, str] = {}
    while len(endings) < len(ranks):
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid in ranks:
            code = os.waitstatus_to_exitcode(status)
            endings[ranks[pid]] = f"exit {code}" if code >= 0 else f"signal {-code}"
            if code != 0:
                deadline = min(deadline, time.monotonic() + GRACE)
        elif _parent_is_gone():
            os.killpg(0, signal.SIGKILL)
        elif time.monotonic() > deadline:
            return endings | _stop({p: r for p, r in ranks.items() if r not in endings})
    return endings


def _parent_is_gone() -> bool:
    readable, _, _ = select.select([0], [], [], POLL)
    return bool(readable) and os.read(0, 1) == b""


def _stop(ranks: dict[int, int]) -> dict[int, str]:
    """Let each rank write down where it hangs, then kill it."""
    for pid in ranks:
        os.kill(pid, signal.SIGUSR1)
    time.sleep(NOTE)
    for pid in ranks:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return dict.fromkeys(ranks.values(), "stopped")


def _run_rank(job: dict[str, Any], rank: int, folder: Path) -> int:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the pipe is for the launcher alone
    for stream, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / f"{rank}.{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    sys.stdout, sys.stderr = os.fdopen(1, "w", 1), os.fdopen(2, "w", 1)
    stack = (folder / f"{rank}.stack").open("w")
    faulthandler.register(signal.SIGUSR1, stack, all_threads=True)
    report: dict[str, Any] = {"failure": None}
    try:
        report["device"] = _prepare(job, rank, folder)
        _execute(job)
    except BaseException as error:
        report["failure"] = failure(error, job["id"], calls=False)
    sys.stdout.flush()
    (folder / f"{rank}.json").write_text(json.dumps(report))
    return 1 if report["failure"] else 0


def _prepare(job: dict[str, Any], rank: int, folder: Path) -> str:
    """Set what torchrun sets, and initialise the group unless the block does that itself."""
    import torch
    import torch.distributed as dist

    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    torch.set_num_threads(1)
    cuda = torch.cuda.device_count() >= job["world"]
    if cuda:
        torch.cuda.set_device(rank)
    # a block on CUDA may still reduce tensors in host memory
    backend = "cpu:gloo,cuda:nccl" if cuda else "gloo"
    if "init_process_group(" not in job["text"]:
        # longer than the launcher waits: it can tell which rank hangs, and where
        limit = timedelta(seconds=2 * job["timeout"] + 60)
        store = f"file://{folder}/store"
        dist.init_process_group(backend, store, limit, world_size=job["world"], rank=rank)
        # a block that fails at once must not look like a start that failed in the other ranks
        dist.barrier()
    return f"{job['world']} ranks, {'nccl' if cuda else 'gloo'}"


def _execute(job: dict[str, Any]) -> None:
    import torch.distributed as dist

    text = job["text"] + "\n"
    linecache.cache[job["id"]] = (len(text), None, text.splitlines(keepends=True), job["id"])
    main = sys.modules["__main__"] = ModuleType("__main__")
    with warnings.catch_warnings():
        if job["warnings_are_errors"]:
            warnings.simplefilter("error")
        exec(compile(text, job["id"], "exec", dont_inherit=True), main.__dict__)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
