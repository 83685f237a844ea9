"""Counts work per element done in Python: bytecodes of solution.py, and reads of one entry.

No clock, so the answer is the same on every machine; no banned word, so a loop over a list of
arrays is fine. One gap is known: entries that C code takes one by one out of `np.asarray(a)`, which
is no longer the array that counts.
"""

import contextlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from grader_learner import FILE


class Counter:
    """How many bytecodes ran and how many single entries were handed to Python."""

    def __init__(self) -> None:
        """Begin at zero."""
        self.bytecodes = 0
        self.entries = 0

    @property
    def total(self) -> int:
        """Both together."""
        return self.bytecodes + self.entries


class CountingArray(np.ndarray):
    """An array that counts the entries that Python takes out of it one by one."""

    counter = Counter()

    def _count(self, entries: int) -> None:
        CountingArray.counter.entries += entries

    def __iter__(self) -> Iterator[Any]:
        self._count(len(self))
        return super().__iter__()

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        self._count(not isinstance(found, np.ndarray))
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        keys = key if isinstance(key, tuple) else (key,)
        self._count(bool(keys) and all(isinstance(k, (int, np.integer)) for k in keys))
        super().__setitem__(key, value)

    def tolist(self) -> Any:
        """As of any array, counted."""
        self._count(self.size)
        return super().tolist()

    def item(self, *index: Any) -> Any:
        """As of any array, counted."""
        self._count(1)
        return super().item(*index)

    @property
    def flat(self) -> Any:
        """As of any array, counted."""
        self._count(self.size)
        return np.ndarray.flat.__get__(self)


def counting(value: Any) -> Any:
    """`value` with every array in it as a counting view of the same memory."""
    if isinstance(value, np.ndarray):
        return value.view(CountingArray)
    if isinstance(value, (list, tuple)):
        return type(value)(counting(item) for item in value)
    if isinstance(value, dict):
        return {key: counting(item) for key, item in value.items()}
    return value


def count(work: Callable[..., Any], *args: Any) -> Counter:
    """Call `work` and count what solution.py does in it."""
    CountingArray.counter = counter = Counter()
    with _monitored(counter) if sys.version_info >= (3, 12) else _traced(counter):
        work(*args)
    return counter


@contextlib.contextmanager
def _traced(counter: Counter) -> Iterator[None]:
    def each(frame: types.FrameType, event: str, argument: Any) -> Any:
        counter.bytecodes += event == "opcode"
        return each

    def enter(frame: types.FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != FILE:
            return None
        frame.f_trace_opcodes = True
        return each

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(before)


@contextlib.contextmanager
def _monitored(counter: Counter) -> Iterator[None]:
    monitoring = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
    tool = next(i for i in range(6) if monitoring.get_tool(i) is None)
    event = monitoring.events.INSTRUCTION

    def each(code: types.CodeType, offset: int) -> Any:
        if code.co_filename != FILE:
            return monitoring.DISABLE
        counter.bytecodes += 1
        return None

    monitoring.use_tool_id(tool, "grader")
    monitoring.register_callback(tool, event, each)
    monitoring.set_events(tool, event)
    try:
        yield
    finally:
        monitoring.set_events(tool, monitoring.events.NO_EVENTS)
        monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)
        monitoring.restart_events()
