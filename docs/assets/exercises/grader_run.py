"""One check carried out: the calls, what became of them, and the result that the page shows."""

import sys
import traceback
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader_judge import Call, Failure, Judge
from grader_learner import FILE, Learner, Raised, TimeLimit, clean
from grader_loops import count, counting
from grader_values import arrays, show

if TYPE_CHECKING:
    from grader import Check, NoElementLoop

OWN_FILES = {str(path) for path in Path(__file__).parent.glob("grader*.py")}


class Run:
    """The learner's functions under one check."""

    def __init__(
        self,
        learner: Learner,
        functions: Mapping[str, Callable[..., Any]],
        parameters: Mapping[str, tuple[str, ...]],
        in_place: Collection[str],
    ) -> None:
        """Run nothing yet."""
        self.learner, self.functions = learner, functions
        self.parameters, self.in_place = parameters, in_place
        self.calls: list[str] = []
        self.expected: str | None = None
        self.got: str | None = None

    def report(self, check: "Check | NoElementLoop") -> dict[str, Any]:
        """Carry `check` out; whatever the learner's code does becomes part of the result."""
        test: dict[str, Any] = {"name": check.name, "status": "passed", "message": ""}
        test |= {"difference": None, "traceback": None, "line": None}
        loops = hasattr(check, "sizes")
        try:
            failure = self._count(check) if loops else self._outcome(check)  # type: ignore[arg-type]
        except Raised as raised:
            test |= self._error(check, raised.error)
        except TimeLimit as stop:
            test |= stopped(self.learner, stop)
        else:
            if failure:
                test |= {"status": "failed", "message": failure.text}
                test["difference"] = failure.difference
                self.expected = failure.expected or self.expected
                self.got = failure.got or self.got
        test |= {"call": "\n".join(self.calls), "expected": self.expected, "got": self.got}
        return test | self.learner.output.take()

    def _call(self, name: str, args: tuple[Any, ...]) -> Any:
        self.calls.append(text_of(name, args))
        return self.learner.call(self.functions[name], *args)

    def _outcome(self, check: "Check") -> Failure | None:
        judge = Judge(check, self.in_place)
        self.expected = judge.expected
        call = Call()
        try:
            if check.run:
                call.result = self._script(check.run)
            else:
                name = check.function or next(iter(self.functions))
                call = Call(self.parameters[name], check.args())  # type: ignore[misc]
                call.result = self._call(name, call.args)
        except Raised as raised:
            if check.raises and isinstance(raised.error, check.raises):
                self.got = describe(raised.error)[0]
                return None
            raise
        # guarded as well: what came back may be any object, with code of the learner in it
        failure: Failure | None = self.learner.call(judge.failure, call)
        self.got = judge.got
        return failure

    def _script(self, run: Callable[..., Any]) -> Any:
        def recorded(name: str) -> Callable[..., Any]:
            return lambda *args: self._call(name, args)

        try:
            return run(*(recorded(name) for name in self.functions))
        except (Raised, TimeLimit):
            raise
        except Exception as error:  # the script could not go on with what it was given
            return error

    def _error(self, check: Any, error: BaseException) -> dict[str, Any]:
        message, trace, line = describe(error)
        self.got = message
        known = (m for m in getattr(check, "mistakes", ()) if m.raises)
        if mistake := next((m for m in known if isinstance(error, m.raises)), None):
            message = f"{message}. {mistake.message}"
        return {"status": "error", "message": message, "traceback": trace, "line": line}

    def _count(self, check: "NoElementLoop") -> Failure | None:
        name = check.function or next(iter(self.functions))
        function, entries, counters = self.functions[name], [], []
        for n in check.sizes:
            args = check.args(n)
            self.calls = [text_of(name, args)]
            entries.append(sum(array.size for _, array in arrays(args, "")))
            counters.append(count(self.learner.call, function, *counting(args)))
        self.expected = "as much work in Python for many entries as for few"
        self.got = "; ".join(
            f"{n:,} entries: {c.bytecodes:,} bytecodes, {c.entries:,} entries read one by one"
            for n, c in zip(entries, counters, strict=True)
        )
        growth = counters[1].total - counters[0].total
        if growth * 10 < entries[1] - entries[0]:
            return None
        return Failure(f"The work in Python grows with the number of entries. {check.message}")


def text_of(name: str, args: tuple[Any, ...]) -> str:
    """A call as the learner would write it."""
    return f"{name}({', '.join(show(value) for value in args)})"


def stopped(learner: Learner, stop: BaseException) -> dict[str, Any]:
    """The result of a test that the time limit ended."""
    line = learner.line
    where = f" in line {line}" if line else ""
    message = f"Stopped by the time limit{where}: look for a loop that does not end."
    return {"status": "stopped", "message": message, "traceback": describe(stop)[1], "line": line}


def load_error(learner: Learner, stop: BaseException) -> dict[str, Any]:
    """Why solution.py could not be loaded."""
    if isinstance(stop, Raised):
        message, trace, line = describe(stop.error)
        return {"message": message, "traceback": trace, "line": line or learner.line}
    found = stopped(learner, stop)
    return {key: found[key] for key in ("message", "traceback", "line")}


def describe(error: BaseException) -> tuple[str, str, int | None]:
    """The message, the traceback from the learner's first frame on, and the learner's line."""
    report = traceback.TracebackException.from_exception(error)
    _trim(report)
    plain: Any = {"colorize": False} if sys.version_info >= (3, 13) else {}
    text = "".join(report.format(**plain))
    frames = [frame.lineno for frame in report.stack or [] if frame.filename == FILE]
    line = frames[-1] if frames else None
    if isinstance(error, SyntaxError) and error.filename == FILE:
        line = error.lineno
    message = list(report.format_exception_only(**plain))[-1].strip()
    if isinstance(error, SystemExit):
        message += ": the program ended itself with exit(); return a value instead"
    return clean(message[:2000]), clean(text[:20_000]), line


def _trim(report: traceback.TracebackException | None) -> None:
    if report is None:
        return
    frames = list(report.stack or [])
    first = next((i for i, frame in enumerate(frames) if frame.filename == FILE), len(frames))
    kept = [frame for frame in frames[first:] if frame.filename not in OWN_FILES]
    # a stack of None leaves out the headline: a syntax error has no frame of the learner
    report.stack = traceback.StackSummary.from_list(kept) if kept else None  # type: ignore[assignment]
    for nested in (report.__cause__, report.__context__, *(report.exceptions or ())):
        _trim(nested)
