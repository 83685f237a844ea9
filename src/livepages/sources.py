"""Where the code of a program stands, and the traceback of its failure in few lines."""

import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from livepages.failures import Failure, Frame
from livepages.includes import Place
from livepages.pages import Program

_programs: dict[str, Program] = {}


def compiled(program: Program) -> CodeType:
    """Compile a program under its own id, so that tracebacks do not move with the page.

    Raises:
        SyntaxError: as compile does; its line is that of the block.
    """
    text = program.fence.text + "\n"
    _programs[program.id] = program
    # inspect and tracebacks find the text here
    linecache.cache[program.id] = (len(text), None, text.splitlines(keepends=True), program.id)
    return compile(text, program.id, "exec", dont_inherit=True)


def show(failure: Failure, root: Path) -> Iterator[str]:
    """The lines of a short traceback: frames of pages and of the project, and the last one."""
    for n, frame in enumerate(failure.frames, 1):
        if n == len(failure.frames) or _is_ours(frame, root):
            yield from show_frame(frame, root)
    yield from (f"    {value}" for value in failure.values)
    yield from failure.error.split("\n")


def show_frame(frame: Frame, root: Path) -> Iterator[str]:
    """Where a frame is, and its line of code."""
    inside = f", in {frame.function}" if frame.function != "<module>" else ""
    yield place(frame, root) + inside
    if code := linecache.getline(frame.file, frame.line).strip():
        yield f"    {code}"


def place(frame: Frame, root: Path) -> str:
    """Name the line of a frame: page line, then the line of each included file."""
    if program := _programs.get(frame.file):
        places = program.fence.places
        where = places[min(max(frame.line, 1), len(places)) - 1] if places else ()
        return " -> ".join(map(str, where or program.fence.opening))
    path = Path(frame.file)
    if path.is_relative_to(sys.prefix):
        name = frame.file.rpartition("site-packages/")[2]
    else:
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else frame.file
    return str(Place(name, frame.line))


def _is_ours(frame: Frame, root: Path) -> bool:
    path = Path(frame.file)
    in_project = path.is_relative_to(root) and not path.is_relative_to(sys.prefix)
    return frame.file in _programs or in_project
