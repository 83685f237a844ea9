"""Compare what a program printed with the fence that shows it, and rewrite that fence."""

import difflib
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from livepages.fences import FENCE_LIKE, Fence
from livepages.pages import Page, Program
from livepages.results import Result

DIFFERS = "its output is not what the page shows"
TAB = 4  # what Markdown expands tabs to


def checked(program: Program, result: Result) -> Result:
    """Return the result of a program that ran, failed if its output fence shows other text."""
    if program.output is None:
        return result
    got = shown(program, result)
    if got == _as_shown(program.output.text):
        return result
    lines = tuple(_differ(program, got))
    return replace(result, status="failed", error=DIFFERS, message=lines, update=got)


def shown(program: Program, result: Result) -> str:
    """Return what the output fence must hold: the printed lines, then the exception's."""
    error = result.error if program.kind == "raises" else ""
    return _as_shown("\n".join(filter(None, [result.printed.removesuffix("\n"), error])))


def _as_shown(text: str) -> str:
    """Text as a rendered block holds it: tabs expanded, nothing in blank lines or at the end."""
    lines = text.expandtabs(TAB).split("\n")
    return "\n".join(line if line.strip() else "" for line in lines).rstrip("\n")


def _differ(program: Program, got: str) -> Iterable[str]:
    assert program.output is not None
    yield f"{program.output.opening[0]}: the page shows (-), the block prints (+)"
    page, printed = _as_shown(program.output.text).split("\n"), got.split("\n")
    for line in difflib.ndiff(page, printed):
        if not line.startswith("?"):
            yield f"    {line}".rstrip()
    yield f"if the new output is right: pytest '{program.page}' --update-output"


def unshowable(output: Fence, text: str) -> str | None:
    """Say why a text cannot be written into a fence, None if it can."""
    if any(len(places) > 1 for places in output.places) or len(output.opening) > 1:
        return "the output comes from an included file; change it there"
    if any(FENCE_LIKE.match(line) or re.match(r"\s*;*-+8<-+", line) for line in text.split("\n")):
        return "the output has a line that would end the fence or include a file"
    return None


def updates(page: Page, results: Mapping[str, Result], selected: Collection[str]) -> dict[str, str]:
    """Return the new outputs of the selected programs, by their names."""
    return {
        program.name: text
        for program in page.programs
        if program.name in selected and program.output and program.name in results
        if (text := results[program.name].update) is not None
        and not unshowable(program.output, text)
    }


def rewrite(path: Path, page: Page, texts: dict[str, str]) -> list[str]:
    """Put new outputs (by the name of their programs) into a page; return the names written.

    Nothing else in the file changes, and a reader never sees half of it.

    Raises:
        RuntimeError: if the file is not the one that was tested.
    """
    raw = path.read_bytes()
    if raw.decode("utf-8-sig").replace("\r\n", "\n") != page.text:
        raise RuntimeError(f"{page.path} was changed while it was tested; run the tests again")
    lines = raw.decode("utf-8").splitlines(keepends=True)
    written = [program for program in page.programs if program.name in texts and program.output]
    for program in reversed(written):
        assert program.output is not None
        first, last = program.output.opening[0].line, program.output.closing[0].line
        lines[first : last - 1] = _fenced(lines[first - 1], texts[program.name])
    _replace(path, "".join(lines).encode("utf-8"))
    return [program.name for program in written]


def _fenced(opening: str, text: str) -> list[str]:
    """The lines of an output, behind the indentation, quote marks and line end of its fence."""
    prefix = opening[: len(opening) - len(opening.lstrip("\ufeff> \t"))].lstrip("\ufeff")
    end = opening[len(opening.rstrip("\r\n")) :]
    lines = text.split("\n") if text else []
    return [(prefix + line).rstrip() + end if not line else prefix + line + end for line in lines]


def _replace(path: Path, content: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
        file.write(content)
    os.chmod(file.name, path.stat().st_mode & 0o777)
    os.replace(file.name, path)
