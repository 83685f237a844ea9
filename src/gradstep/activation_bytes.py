"""The most memory that was alive at once while a function ran."""

import itertools
import json
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch.profiler import ProfilerActivity, profile

__all__ = ["peak_activation_bytes"]

_ONE_AT_A_TIME = threading.RLock()  # two profilers in one process end it


def peak_activation_bytes(function: Callable[[], object]) -> int:
    """Measure the most bytes that were alive at once on the CPU while a function ran.

    They are counted from the start of the call, from what torch's profiler records of every
    allocation and release by torch's CPU allocator. It cannot tell what a tensor is for, so
    activations count, and so do new gradients, temporaries of kernels and generator states.
    To measure activations alone, let gradients and optimizer state exist before. The number is
    that of the program, not of the allocator's reserve, and repeats exactly where the program does.

    Not in it: what was allocated before, released or not; other threads that the function
    starts itself; NumPy, and what a library takes from the system by itself.

    Runs are slowed by the profiler, so take no times here. Two threads take turns. For a
    GPU use `torch.cuda.max_memory_allocated`. If the profiler's log on standard error
    disturbs, set `KINETO_LOG_LEVEL=99` before torch is imported.

    Args:
        function: Called once, without arguments. What it returns is still alive at the end.

    Returns:
        The number of bytes, 0 for a function that allocates nothing.

    Raises:
        TypeError: `function` cannot be called.
        RuntimeError: A profiler is running already, or memory of another device was allocated.

    Examples:
        >>> import torch, gradstep
        >>> gradstep.peak_activation_bytes(lambda: torch.zeros(1000).exp().sum())  # two of 4 kB
        8000
    """
    if not callable(function):
        raise TypeError(
            f"function must be callable without arguments, got {function!r:.60} of type "
            f"{type(function).__name__}. Write lambda: model(x).sum().backward()."
        )
    with _ONE_AT_A_TIME:
        _refuse_second_profiler()
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
            function()
        return _peak(_memory_events(record))


def _refuse_second_profiler() -> None:
    # no public name tells it, and a second one crashes the process; tests look for the name
    if getattr(torch.autograd.profiler, "_is_profiler_enabled", False):
        raise RuntimeError(
            "a profiler is running already, and torch has one at a time. Measure outside of it, "
            "and not inside another peak_activation_bytes."
        )


def _memory_events(record: profile) -> list[dict[str, int]]:
    """The bytes and the device of each allocation, negative for a release, in order."""
    with TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        record.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text("utf-8"))["traceEvents"]
    memory = [event for event in events if event.get("name") == "[memory]"]
    return [event["args"] for event in sorted(memory, key=lambda event: event["ts"])]


def _peak(events: list[dict[str, int]]) -> int:
    if any(event["Device Type"] for event in events):  # 0 is the CPU
        raise RuntimeError(
            "peak_activation_bytes counts memory of the CPU, but the function allocated some on "
            "another device. Use torch.cuda.max_memory_allocated() for that one."
        )
    return max(itertools.accumulate((event["Bytes"] for event in events), initial=0))
