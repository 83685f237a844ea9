"""Resolve `--8<--` includes as the site does, and remember where every line came from."""

import difflib
import re
from pathlib import Path
from typing import Any, NamedTuple

from markdown import Markdown  # type: ignore[import-untyped]
from pymdownx.snippets import (  # type: ignore[import-untyped]
    SnippetMissingError,
    SnippetPreprocessor,
)

from livepages.site import Site

# a directive that pymdown does not expand: published as it stands, or dropped
LITERAL = re.compile(
    r"""[ \t>]*(?:[-*+][ \t]+|\d+[.)][ \t]+)?(?:\#[ \t]*)?-+8<-+(?!.*\[[ \t]*(?:start|end))"""
)


class Place(NamedTuple):
    """A line of a file, as messages name it."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Fault(NamedTuple):
    """Something on a page that must be put right before any block of it runs."""

    places: tuple[Place, ...]
    message: str

    def __str__(self) -> str:
        return f"{' -> '.join(map(str, self.places))}: {self.message}"


class Line(str):
    """A line of text and where it stands: in the page first, then in each nested file."""

    places: tuple[Place, ...]

    def __new__(cls, text: str, places: tuple[Place, ...]) -> "Line":
        """Make a line that stands at `places`."""
        line = super().__new__(cls, text)
        line.places = places
        return line

    def __radd__(self, space: str) -> "Line":
        # pymdown puts an include's indentation in front of its lines: they keep their places
        return Line(space + str(self), self.places)


class Resolver(SnippetPreprocessor):  # type: ignore[misc]
    """Pymdown's own resolver: it only keeps places and refuses what pymdown would drop."""

    def __init__(self, site: Site) -> None:
        """Take the options from the site; a missing file or section is never silent."""
        options = {**site.snippet_options, "check_paths": True, "auto_append": []}
        super().__init__(options, Markdown())
        self.site = site
        self.faults: list[Fault] = []
        self.stack: list[tuple[Place, ...]] = []

    def expand(self, path: str, text: str) -> list[Line]:
        """Return the page's lines with every include resolved; faults are in `faults`."""
        self.faults = []
        lines = text.split("\n")
        placed = [Line(text, (Place(path, n),)) for n, text in enumerate(lines, 1)]
        expanded: list[Line] = self.run(placed)
        return expanded

    def parse_snippets(
        self,
        lines: list[Any],
        file_name: str | None = None,
        is_url: bool = False,
        is_section: bool = False,
    ) -> list[Line]:
        """Resolve one line at a time, so that each result is traced to its directive."""
        new: list[Line] = []
        for line in lines:
            self.stack.append(getattr(line, "places", ()))
            try:
                new += self._resolve(line, file_name, is_url, is_section)
            except SnippetMissingError as error:
                places = tuple(place for level in self.stack for place in level)
                self.faults.append(Fault(places, self._explain(line, str(error))))
            finally:
                self.stack.pop()
        return new

    def _resolve(self, line: str, *context: Any) -> list[Line]:
        outer = self.stack[-1]
        directive = self.RE_ALL_SNIPPETS.match(line)
        if not directive or directive["escape"]:
            if not directive and LITERAL.match(line):
                raise SnippetMissingError(
                    f"{line.strip()!r} is not understood as an include and would be published; "
                    'write --8<-- "file:section" alone on its line, with nothing behind it'
                )
            return [Line(text, outer) for text in super().parse_snippets([line], *context)]
        if directive["block_marker"]:
            raise SnippetMissingError('write each include as --8<-- "file:section"')
        before = len(self.faults)
        found = super().parse_snippets([line], *context)
        if not "".join(found).strip() and len(self.faults) == before:
            raise SnippetMissingError(f"{line.strip()} includes nothing, or includes itself")
        return [Line(inner, outer + inner.places) for inner in found]

    def _explain(self, line: str, message: str) -> str:
        if "could not be found" not in message:
            return message
        wanted = re.sub(r".*'(.*)'.*", r"\1", message)
        files = [f for base in self.base_path for f in self._files(Path(base))]
        near = difflib.get_close_matches(wanted, files, 1)
        hint = f"; did you mean {near[0]}?" if near else f" below {', '.join(self.base_path)}"
        return f"{line.strip()} includes {wanted!r}, but there is no such file{hint}"

    def _files(self, base: Path) -> list[str]:
        found = (p for top in ("snippets", "docs", "src") for p in (base / top).rglob("*.*"))
        return [p.relative_to(base).as_posix() for p in found]

    def parse_snippet_target(self, path: str) -> Any:
        """Refuse line ranges: they go stale silently when the file changes."""
        target = super().parse_snippet_target(path)
        if target and target["start"]:
            raise SnippetMissingError(
                f'"{path}" includes by line number; mark a section in the file '
                f'(# --8<-- [start:name]) and write --8<-- "{target["path"]}:name"'
            )
        return target

    def read_lines(self, path: str) -> list[str]:
        """Read a file and note where each line stands."""
        name = self.site.relative(path)
        lines = super().read_lines(path)
        return [Line(text, (Place(name, n),)) for n, text in enumerate(lines, 1)]

    def extract_section(self, section: str, lines: list[Line]) -> list[str]:
        """Refuse a section that is missing or never closed; name the ones that are there."""
        path = lines[0].places[0].path if lines else "the file"
        marks = [m for x in lines if (m := self.match_section(x)) and not m["escape"]]
        kinds = [m["type"].lower() for m in marks if m["name"] == section]
        if kinds[:1] != ["start"]:
            names = ", ".join(dict.fromkeys(m["name"] for m in marks)) or "none"
            raise SnippetMissingError(
                f"{path} has no section {section!r}; the sections there: {names}"
            )
        if "end" not in kinds:
            raise SnippetMissingError(
                f"section {section!r} of {path} is never closed; add # --8<-- [end:{section}]"
            )
        selected: list[str] = super().extract_section(section, lines)
        return selected

    def dedent(self, lines: list[str]) -> list[str]:
        """Dedent as pymdown does; every line stays where it stands."""
        if not lines:
            return []
        places = [getattr(line, "places", ()) for line in lines]
        dedented: list[str] = super().dedent(lines)
        return [Line(text, at) for text, at in zip(dedented, places, strict=True)]
