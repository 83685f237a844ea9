"""Start the ranks of a block, and turn what they left behind into one result."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from livepages import sources
from livepages.failures import Failure, Frame
from livepages.pages import Program
from livepages.ranks import GRACE
from livepages.results import Result

STACK = re.compile(r'File "[^"]*::[^"]*", line (\d+) in (\S+)')
LOST = "the connection to another rank was lost"
START = 30.0  # seconds for Python and torch to load, on top of the block's own limit


def run_ranks(program: Program, root: Path, timeout: float) -> Result:
    """Run a block by as many processes as its tag says; none outlives the call."""
    assert program.use is not None
    with TemporaryDirectory(prefix=f"livepages-{os.getpid()}-") as name:
        folder = Path(name)
        job = {
            "id": program.id,
            "text": program.fence.text,
            "world": program.use.number,
            "timeout": timeout,
            "warnings_are_errors": any(f[0] == "error" for f in warnings.filters),
        }
        (folder / "job.json").write_text(json.dumps(job))
        _launch(folder, program.use.number, timeout)
        return _result(program, folder, root, timeout)


def _launch(folder: Path, world: int, timeout: float) -> None:
    command = [sys.executable, "-m", "livepages.ranks", str(folder)]
    with (folder / "launcher.err").open("w") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=_environment(world),
            start_new_session=True,
        )
    try:
        process.wait(START + timeout)
    except subprocess.TimeoutExpired:
        pass
    finally:
        _kill_group(process)


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):  # all of them have ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin:
        process.stdin.close()


def _environment(world: int) -> dict[str, str]:
    """What torchrun sets; the ranks add their own number."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {"WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1"}
    settings = {**own, "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
    loopback = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
    return {**loopback, **os.environ, **{key: str(value) for key, value in settings.items()}}


def _result(program: Program, folder: Path, root: Path, timeout: float) -> Result:
    if not (folder / "endings.json").exists():
        errors = _text(folder / "launcher.err").strip().split("\n")[-3:]
        return Result("failed", message=("the ranks could not be started", *errors))
    endings = json.loads((folder / "endings.json").read_text())
    lines = {
        rank: list(_fault(program, folder, rank, ending, root, timeout))
        for rank, ending in endings.items()
    }
    # the rank that failed comes before those that lost it
    faults = dict(sorted(filter(lambda item: item[1], lines.items()), key=lambda i: LOST in i[1]))
    device = next((r["device"] for rank in endings if (r := _report(folder, rank))), "ranks")
    printed = _text(folder / "0.out")
    if not faults:
        return Result("ran", device, printed=printed)
    error = next(iter(faults.values()))[-1]
    message = tuple(_by_rank(program, faults))
    return Result("failed", device, printed=printed, error=error, message=message)


def _report(folder: Path, rank: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(_text(folder / f"{rank}.json") or "{}")
    return report


def _text(file: Path) -> str:
    """What a process wrote; one that was killed may have written nothing."""
    return file.read_text() if file.exists() else ""


def _fault(
    program: Program, folder: Path, rank: str, ending: str, root: Path, timeout: float
) -> Iterator[str]:
    """Say what went wrong in one rank, nothing if it ran to its end."""
    report = _report(folder, rank)
    if report.get("failure"):
        frames, error, values = report["failure"]
        failure = Failure(tuple(Frame(*frame) for frame in frames), error, tuple(values))
        yield from sources.show(_without_gloo(failure, program), root)
    elif ending == "stopped":
        yield f"still running after {timeout:g} s (ranks_timeout), or {GRACE:g} s after a failure"
        for line, function in STACK.findall(_text(folder / f"{rank}.stack"))[:1]:
            yield from sources.show_frame(Frame(program.id, int(line), function), root)
    elif not report:
        kind, _, number = ending.partition(" ")
        how = f"killed by {signal.Signals(int(number)).name}" if kind == "signal" else ending
        yield f"the process ended before the block did: {how}"
        yield from filter(None, _text(folder / f"{rank}.err").strip().split("\n")[-3:])


def _without_gloo(failure: Failure, program: Program) -> Failure:
    """A rank whose peer is gone: where it waited tells something, gloo's own lines do not."""
    if "Connection" not in failure.error or "gloo" not in failure.error:
        return failure
    frames = tuple(frame for frame in failure.frames if frame.file == program.id)
    return Failure(frames, LOST)


def _by_rank(program: Program, faults: dict[str, list[str]]) -> Iterator[str]:
    """Every rank's error, once if all have the same."""
    assert program.use is not None
    same = len(faults) == program.use.number and len(set(map(tuple, faults.values()))) == 1
    for rank, lines in faults.items():
        yield "every rank:" if same else f"rank {rank}:"
        yield from (f"  {line}" for line in lines)
        if same:
            break
    if any("NameError: " in line for lines in faults.values() for line in lines):
        tag = f".ranks-{program.use.number}"
        yield f"a {tag} block does not see the names of its page: define them in it"
