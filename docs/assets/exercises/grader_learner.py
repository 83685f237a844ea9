"""The learner's program: loaded, called, and kept from disturbing anything but its arguments."""

import ast
import builtins
import contextlib
import inspect
import io
import linecache
import math
import random
import signal
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

FILE = "solution.py"
OUTPUT_LIMIT = 64 * 1024  # characters over all tests: an endless print must not fill the page
PATCHABLE = (builtins, math, np, np.linalg)


class TimeLimit(KeyboardInterrupt):
    """The soft time limit; not an `Exception`, so that `except Exception` lets it pass."""

    __module__ = "builtins"  # a traceback then shows the bare name


class Raised(Exception):  # noqa: N818 (it carries an error, it is none of its own)
    """What the learner's program raised, as `error`."""

    def __init__(self, error: BaseException) -> None:
        """Carry `error` past the grader's own code."""
        self.error = error


class Output(io.TextIOBase):
    """Captured print output; `room` is shared by all tests of a run."""

    room = OUTPUT_LIMIT

    def __init__(self, report: Callable[[str], object] | None = None) -> None:
        """Begin with all the room; `report` is called with each text as it comes."""
        self.report = report
        self.parts: list[str] = []
        self.dropped = 0

    def writable(self) -> bool:
        """Say that text can be written."""
        return True

    def write(self, text: str) -> int:
        """Keep as much of `text` as there is room for."""
        if not isinstance(text, str):
            raise TypeError(f"write() needs a str, got {type(text).__name__}")
        kept = clean(text[: self.room])
        self.room -= len(kept)
        self.dropped += len(text) - len(kept)
        if kept:
            self.parts.append(kept)
            if self.report:
                self.report(kept)
        return len(text)

    def take(self) -> dict[str, Any]:
        """What was written since the last call."""
        taken = {"output": "".join(self.parts), "dropped": self.dropped}
        self.parts, self.dropped = [], 0
        return taken


def clean(text: str) -> str:
    """Replace what no JSON reader would take: lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


class Learner:
    """One solution.py. Its code only runs inside `call`, guarded on all sides."""

    def __init__(self, source: str, report: Callable[[str], object] | None = None) -> None:
        """Keep `source`; nothing of it runs yet."""
        self.source = source
        self.output = Output(report)
        self.stopped = False
        self.line: int | None = None

    def load(self, functions: Mapping[str, Sequence[str]]) -> dict[str, Callable[..., Any]]:
        """Run the program and take its `functions`.

        Raises:
            Raised: for what the program raised, and for a function that is missing or that does
                not take its arguments.
        """
        lines = self.source.splitlines(keepends=True)
        linecache.cache[FILE] = (len(self.source), None, lines, FILE)
        module = sys.modules["solution"] = types.ModuleType("solution")
        module.__file__ = FILE
        self.call(lambda: exec(compile(self.source, FILE, "exec", dont_inherit=True), vars(module)))
        defined = {name: vars(module).get(name) for name in functions}
        for name, parameters in functions.items():
            if fault := self._fault(name, defined[name], parameters):
                raise Raised(fault)
        return defined  # type: ignore[return-value]

    def _fault(self, name: str, found: Any, parameters: Sequence[str]) -> Exception | None:
        wanted = f"{name}({', '.join(parameters)})"
        nodes = {node.name: node for node in ast.parse(self.source).body if hasattr(node, "name")}
        if not callable(found):
            others = f"it defines {', '.join(nodes)}" if nodes else "it defines no function"
            return NameError(f"{FILE} must define {wanted}, but {others}: keep the starter's name")
        try:
            signature = self.call(inspect.signature, found)
            signature.bind(*parameters)
        except Raised:  # no signature to be had: the calls will tell
            return None
        except TypeError:
            self.line = nodes[name].lineno if name in nodes else None
            text = f"{name} is called as {wanted}, but is defined as {name}{signature}"
            return TypeError(f"{text}: it must take {len(parameters)} arguments")
        return None

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call `function`, which is the learner's or meets objects of the learner.

        Raises:
            Raised: whatever it raised, SystemExit too.
            TimeLimit: when the time is up, also where the program went on regardless.
        """
        self._check_time()
        try:
            with self.interruptible(), undisturbed(self.output):
                saved = [(vars(module), dict(vars(module))) for module in PATCHABLE]
                try:
                    result = function(*args)
                finally:
                    for current, values in saved:  # first of all: the next lines need builtins
                        current.update(values)
        except TimeLimit:
            raise
        except BaseException as error:
            self._check_time()
            raise Raised(error) from None
        self._check_time()
        return result

    def _check_time(self) -> None:
        if self.stopped:
            raise TimeLimit("the program ran too long") from None

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Make SIGINT the time limit, where Python can (its main thread)."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _interrupt(self, number: int, frame: types.FrameType | None) -> None:
        self.stopped = True
        while frame is not None and frame.f_code.co_filename != FILE:
            frame = frame.f_back
        if frame is not None:  # never in the grader's own code, which has to be able to tidy up
            self.line = frame.f_lineno
            self._check_time()


@contextlib.contextmanager
def same_chance() -> Iterator[None]:
    """Put back the state of the two shared random generators."""
    states = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


@contextlib.contextmanager
def undisturbed(output: Output) -> Iterator[None]:
    """Capture output and warnings, and put back what a program may have changed for everyone."""
    limit, trace, options = sys.getrecursionlimit(), sys.gettrace(), np.get_printoptions()
    stdin, sys.stdin = sys.stdin, io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(output),
            np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"),
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("default")
            yield
    finally:
        sys.stdin = stdin
        sys.settrace(trace)
        sys.setrecursionlimit(limit)
        np.set_printoptions(**options)
        for each in caught:
            output.write(f"{each.category.__name__}: {each.message} (line {each.lineno})\n")
