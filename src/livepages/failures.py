"""An exception as plain data, which also travels between processes; nothing heavy is loaded."""

import traceback
from typing import NamedTuple

from livepages import explain


class Frame(NamedTuple):
    """One level of a traceback."""

    file: str
    line: int
    function: str


class Failure(NamedTuple):
    """An exception: its frames from the outermost on, what it says, what its values were."""

    frames: tuple[Frame, ...]
    error: str
    values: tuple[str, ...] = ()


def last_line(error: BaseException) -> str:
    """Return what a traceback ends with: the type and message of the exception."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    return "".join(traceback.format_exception_only(error)).rstrip("\n")


def failure(error: BaseException, program: str, calls: bool = True) -> Failure:
    """Note an exception from the first frame of a program (by its id) on.

    Do so where it is caught, while its frames and the state around them are still there. With
    `calls` the sides of a failed assert are found out even if that calls functions again.
    """
    summary = traceback.extract_tb(error.__traceback__)
    frames = [Frame(f.filename, f.lineno or 0, f.name) for f in summary]
    if isinstance(error, SyntaxError) and error.filename == program:
        frames = [Frame(program, error.lineno or 1, "<module>")]
    first = next((n for n, frame in enumerate(frames) if frame.file == program), 0)
    is_bare_assert = isinstance(error, AssertionError) and not error.args
    values = explain.values(error.__traceback__, calls) if is_bare_assert else ()
    return Failure(tuple(frames[first:]), last_line(error), values)
