"""A page and its blocks as pytest shows them."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

import pytest
from _pytest._code.code import ReprFileLocation, TerminalRepr
from _pytest._io import TerminalWriter
from sybil.integration.pytest import SybilFile, SybilItem

from livepages import counts, outputs, written
from livepages.documents import PageDocument, PageSybil
from livepages.includes import Place
from livepages.pages import WHOLE, PageError, Program
from livepages.record import code_of
from livepages.results import Result
from livepages.running import PageRun
from livepages.site import Site

RECORD = "livepages"  # the user property of a report that holds the result of a block
SHOWN = 20  # lines of a failed block's own output


class BrokenError(Exception):
    """A block or a page that is not as it should be; the message is the whole report."""

    def __init__(self, message: str, short: str = "") -> None:
        """Take the report, and a line of it for pytest's short summary."""
        super().__init__(message)
        self.short = short


class Report(TerminalRepr):
    """A failure in few lines, without frames of pytest, Sybil or this package."""

    def __init__(self, place: Place, error: BaseException) -> None:
        """Take the lines, and what pytest's short summary says."""
        self.text = str(error)
        short = getattr(error, "short", "") or self.text
        self.reprcrash = ReprFileLocation(place.path, place.line, short)

    def toterminal(self, tw: TerminalWriter) -> None:
        """Write the lines as they are."""
        tw.line(self.text)


class PageFile(SybilFile):
    """A page: one item for it as a whole, and one for each of its blocks."""

    site: Site
    document: PageDocument

    def collect(self) -> Iterator[pytest.Item]:
        """Parse the page; if it has faults they are the one error and nothing of it runs."""
        (sybil,) = self.sybils
        try:
            document = sybil.parse(self.path)
        except PageError as error:
            raise self.CollectError(str(error)) from None
        assert isinstance(document, PageDocument)
        self.document = document
        self.documents.append(document)
        find = partial(written.fault_of, self.site, document.run.page)
        place = Place(document.run.page.path, 1)
        yield CheckItem.from_parent(self, name=WHOLE, find=find, place=place)
        for example in self.document.examples():
            yield PageItem.from_parent(self, sybil=sybil, example=example)


class PageItem(SybilItem):
    """One block of a page."""

    parent: PageFile

    @property
    def program(self) -> Program:
        """The block."""
        program: Program = self.example.parsed
        return program

    @property
    def run(self) -> PageRun:
        """The run of its page."""
        return self.parent.document.run

    def runtest(self) -> None:
        """Run what the block depends on, then the block; report its result."""
        self.example.evaluate()
        result = self.run.results[self.program.name]
        self.user_properties.append((RECORD, _record(self.program, result)))
        if result.update is not None and self.config.getoption("update_output"):
            self._require_showable(result.update)
        elif result.status == "failed":
            raise BrokenError(_describe(self.program, result), result.error)
        elif result.status == "blocked":
            self._not_run(result)
        elif result.status == "compiled":
            self._skip(result.message[0])

    def _require_showable(self, text: str) -> None:
        assert self.program.output is not None
        if reason := outputs.unshowable(self.program.output, text):
            raise BrokenError(f"{self.program.output.opening[0]}: not rewritten: {reason}")

    def _not_run(self, result: Result) -> None:
        """Skip if the block to blame is reported by this run too, else fail and show it."""
        culprit = self.run.culprit(self.program)
        assert culprit is not None
        if culprit.name in self.run.selected:
            self._skip(result.message[0])
        blame = _describe(culprit, self.run.results[culprit.name])
        raise BrokenError(f"{blame}\n{self.program.name}: {result.message[0]}")

    def _skip(self, reason: str) -> None:
        raise pytest.skip.Exception(reason, _use_item_location=True)

    def reportinfo(self) -> tuple[Any, int, str]:
        """Where the fence opens, and the id."""
        return self.path, self.program.place.line - 1, self.program.id

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the message alone."""
        if isinstance(excinfo.value, BrokenError):
            return Report(self.program.place, excinfo.value)
        return super(SybilItem, self).repr_failure(excinfo, style)


class CheckItem(pytest.Item):
    """A claim about a file that is checked without running anything."""

    def __init__(self, *, find: Callable[[], str | None], place: Place, **options: Any) -> None:
        """Take what finds the fault, and the file to blame."""
        super().__init__(**options)
        self.find = find
        self.place = place

    def runtest(self) -> None:
        """Fail with the fault, if there is one."""
        try:
            fault = self.find()
        except ValueError as error:  # the table cannot be read
            fault = f"{counts.NAME}: {error}; write it anew: pytest docs {counts.FLAG}"
        if fault:
            raise BrokenError(fault)

    def reportinfo(self) -> tuple[Any, int, str]:
        """The file, and the id."""
        return self.path, self.place.line - 1, f"{self.place.path}::{self.name}"

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the message alone."""
        return Report(self.place, excinfo.value)


class TableFile(pytest.File):
    """The table of counts: every page of it exists."""

    site: Site

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the one item."""
        place = Place(self.site.relative(self.path), 1)
        find = partial(counts.fault_of_table, self.site)
        yield CheckItem.from_parent(self, name="pages", find=find, place=place)


def collect(
    path: Any, parent: pytest.Collector, site: Site, sybil: PageSybil
) -> PageFile | TableFile | None:
    """Return the collector of a page or of the table, None for any other file."""
    if site.is_page(path):
        page: PageFile = PageFile.from_parent(parent, path=path, sybils=[sybil])
        page.site = site
        return page
    if path == site.docs / counts.NAME:
        table: TableFile = TableFile.from_parent(parent, path=path)
        table.site = site
        return table
    return None


def _record(program: Program, result: Result) -> dict[str, Any]:
    of_program = {"kind": program.kind, "code": code_of(program)}
    return {**of_program, **asdict(result), "message": list(result.message)}


def _describe(program: Program, result: Result) -> str:
    """Page, line and heading; what was wrong; what the block had printed."""
    heading = f' under "{program.heading}"' if program.heading else ""
    lines = [f"{program.name}, {program.place}{heading}", *result.message]
    if result.printed and result.update is None:
        printed = result.printed.rstrip("\n").split("\n")[-SHOWN:]
        lines += ["it had printed:", *(f"    {line}" for line in printed)]
    return "\n".join(lines)
