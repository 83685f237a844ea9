"""A Markdown extension: the table of what is executed where, made when the site is built.

In `mkdocs.yml`:

    markdown_extensions:
      - livepages.boundary

In a page, alone on a line, the folder of that page below docs, for its links:

    <!-- execution-record from lesson -->

The programs are those that the tests parse from the pages, and the last runs on CUDA are those of
docs/.record.json, so an edited page cannot disagree with its row.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from markdown import Markdown  # type: ignore[import-untyped]
from markdown.extensions import Extension  # type: ignore[import-untyped]
from markdown.preprocessors import Preprocessor  # type: ignore[import-untyped]

from livepages import record
from livepages import site as sites
from livepages.pages import Page, PageError, Program, read
from livepages.record import CudaRun
from livepages.site import Site

PLACEHOLDER = re.compile(r"<!-- execution-record from (?P<folder>\S+) -->")
SPECIAL = re.compile(r"[\\`*_{}\[\]<>&|$#~^]")  # to Markdown or one of the site's extensions
EVERY = "in every test run"


class _Table(Preprocessor):  # type: ignore[misc]
    """Runs when fences are out of the way, so that a page can show the placeholder."""

    def run(self, lines: list[str]) -> list[str]:
        new: list[str] = []
        for line in lines:
            found = PLACEHOLDER.fullmatch(line)
            new += table(sites.load(Path.cwd()), found["folder"]) if found else [line]
        return new


def table(site: Site, folder: str) -> Iterator[str]:
    """Yield the lines of Markdown that say of each program on the site where it is executed."""
    pages, broken = _read(site)
    programs = [(page, program) for page in pages for program in page.programs]
    cuda = record.load(site)
    special = [(page, program) for page, program in programs if program.is_leaf]
    yield from _sums([program for _, program in programs], cuda)
    yield ""
    if special:
        yield from ("| Program | Page | Executed |", "|---|---|---|")
    for page, program in special:
        where = executed(program, cuda.get(program.id))
        yield f"| {_title(program)} | {_link(site, page, folder)} | {where} |"
    yield from ("", f'??? note "The programs that run on a CPU {EVERY}, page by page"', "")
    for page in pages:
        if titles := [_title(program) for program in page.programs if not program.is_leaf]:
            yield f"    - {_link(site, page, folder)}: {' · '.join(titles)}"
    for name in broken:
        yield from ("", f"{_plain(name)} cannot be tested as it stands: run pytest {_plain(name)}")
    yield ""


def _read(site: Site) -> tuple[list[Page], list[str]]:
    """The pages, and the paths of those with faults: a writer's half-edited page stops no build."""
    pages, broken = [], []
    for path in site.pages():
        try:
            pages.append(read(site, path))
        except PageError:
            broken.append(site.relative(path))
    return pages, broken


def _sums(programs: list[Program], cuda: dict[str, CudaRun]) -> Iterable[str]:
    kinds = [program.kind for program in programs]
    gpu = [program for program in programs if program.kind == "gpu"]
    done = sum(_is_current(program, cuda.get(program.id)) for program in gpu)
    plain = len(kinds) - len(gpu) - kinds.count("ranks")
    return (
        "| Programs | Where they are executed |",
        "|---:|---|",
        f"| {plain} | on a CPU, {EVERY} |",
        f"| {kinds.count('ranks')} | by several processes on a CPU, {EVERY} |",
        f"| {len(gpu)} | on CUDA only: {done} so far in the form shown; compiled {EVERY} |",
    )


def executed(program: Program, run: CudaRun | None) -> str:
    """Say where a program is executed, and what is known of its last run on CUDA."""
    last = _last(run) if run else ""
    current = _is_current(program, run)
    if program.kind == "gpu" and not current:
        return f"not yet in the form shown; an earlier form {last}" if last else "not yet executed"
    if program.kind == "gpu":
        return last
    number = program.use.number if program.use else 1
    return f"by {number} processes, {EVERY}" + (f"; with NCCL {last}" if current else "")


def _is_current(program: Program, run: CudaRun | None) -> bool:
    return run is not None and run.code == record.code_of(program)


def _last(run: CudaRun) -> str:
    commit = f", commit {run.commit}" if run.commit else ""
    driver = f", driver {run.driver}" if run.driver else ""
    versions = f"torch {run.torch}, Python {run.python}{driver}{commit}"
    return _plain(f"{run.date} on {run.device}, {versions}")


def _title(program: Program) -> str:
    return _plain(program.fence.title or program.name)


def _link(site: Site, page: Page, folder: str) -> str:
    path = os.path.relpath(site.root / page.path, site.docs / folder).replace(os.sep, "/")
    return f"[{page.programs[0].heading.partition(' > ')[0] or path}]({path})"


def _plain(text: str) -> str:
    return SPECIAL.sub(lambda match: f"&#{ord(match[0])};", text)


class BoundaryExtension(Extension):  # type: ignore[misc]
    """Puts the table where the placeholder stands."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 (Markdown's name)
        """Register between superfences (25) and html_block (20), which would take the comment."""
        md.preprocessors.register(_Table(md), "livepages_boundary", 24)


def makeExtension(**options: Any) -> BoundaryExtension:  # noqa: N802 (Markdown's name)
    """Return the extension, as Markdown asks for it."""
    return BoundaryExtension(**options)
