"""The code blocks of a page, exactly those that the site renders, with their places.

One parser: the page goes through Markdown with the site's own extensions; SuperFences tells
which lines it took, and the HTML tells which blocks a reader sees (not those in a comment).
"""

import re
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from typing import Any

from markdown import Markdown  # type: ignore[import-untyped]
from markdown.preprocessors import Preprocessor  # type: ignore[import-untyped]
from pygments.lexers.python import Python2Lexer, PythonLexer  # type: ignore[import-untyped]
from pymdownx.superfences import (  # type: ignore[import-untyped]
    RE_NESTED_FENCE_START,
    RE_OPTIONS,
    SuperFencesBlockPreprocessor,
)

from livepages.includes import Line, Place
from livepages.site import Site

PYTHON = {*PythonLexer.aliases, *Python2Lexer.aliases, "ipython", "ipython3", "cython"}
# looks like the start of a fence; a closed `code span` on one line does not
FENCE_LIKE = re.compile(r"[> \t]*(?:(?:[-*+]|\d+[.)])[ \t]+)*(?P<header>(?:`{3,}|~{3,})[^`]*)$")
# includes are resolved before; the boundary reads every page itself, and holds no fence
# formulas are converted by their own check, which knows their lines
NOT_HERE = {"pymdownx.snippets", "livepages.boundary", "livepages.formulas"}
MARK = re.compile(r"livepages(\d+)fence")


@dataclass(frozen=True)
class Fence:
    """A code block as the site renders it.

    Args:
        header: the opening line from its first backtick on.
        prefix: the indentation and quote marks in front of it.
        language: as SuperFences understood it.
        classes: from the braces, without the language.
        title: the title option, empty without one.
        text: the code that readers see.
        places: where each line of `text` stands.
        opening: the place of the opening line.
        closing: the place of the closing line.
    """

    header: str
    prefix: str
    language: str
    classes: tuple[str, ...]
    title: str
    text: str
    places: tuple[tuple[Place, ...], ...]
    opening: tuple[Place, ...]
    closing: tuple[Place, ...]

    @property
    def is_python(self) -> bool:
        """Whether the site highlights it as Python."""
        return self.language.lower() in PYTHON

    @property
    def in_page(self) -> bool:
        """Whether the fence itself is written in the page, not in an included file."""
        return len(self.opening) == 1


@dataclass(frozen=True)
class Stray:
    """A line that looks like a fence but renders as text."""

    line: Line
    header: str
    closed: bool


class _Seen(HTMLParser):
    """Collects the marks that a reader would see."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.blocks: set[int] = set()
        self.hidden: set[int] = set()
        self.strays: set[int] = set()
        self.pre = 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.pre += tag == "pre"
        self.blocks |= {int(value or 0) for name, value in attrs if name == "data-fence"}

    def handle_endtag(self, tag: str) -> None:
        self.pre -= tag == "pre"

    def handle_comment(self, data: str) -> None:
        self.hidden |= {int(n) for n in re.findall(r'data-fence="(\d+)"', data)}

    def handle_data(self, data: str) -> None:
        if not self.pre:
            self.strays |= {int(n) for n in MARK.findall(data)}


class _MarkStrays(Preprocessor):  # type: ignore[misc]
    """Runs right behind SuperFences and marks what looks like a fence and was not taken."""

    def __init__(self, renderer: "Renderer") -> None:
        super().__init__(renderer.md)
        self.renderer = renderer

    def run(self, lines: list[str]) -> list[str]:
        ends = {start: end for start, end, _ in self.renderer.taken}
        marked, index = [], 0
        for line in lines:
            taken = index in ends
            mark = "" if taken or not FENCE_LIKE.match(line) else f" livepages{index}fence"
            marked.append(line + mark)
            index = ends[index] if taken else index + 1
        return marked


class Renderer:
    """Markdown as the site runs it, but for includes (resolved before) and highlighting."""

    def __init__(self, site: Site) -> None:
        """Load the site's extensions once; a page costs some milliseconds then."""
        names = [name for name in site.extensions if name not in NOT_HERE]
        self.md = Markdown(extensions=names, extension_configs=site.extensions)
        self.fenced: Any = self.md.preprocessors["fenced_code_block"]
        if not isinstance(self.fenced, SuperFencesBlockPreprocessor):
            raise TypeError("mkdocs.yml must list pymdownx.superfences: page tests read its blocks")
        self.fenced.extension.superfences[0]["formatter"] = lambda **_: ""
        self._store = self.fenced._store
        self.fenced._store = self._record
        self.md.preprocessors.register(_MarkStrays(self), "livepages_strays", 24.5)
        self.lines: list[Line] = []
        self.taken: list[tuple[int, int, Fence]] = []
        self.html = ""  # of the page read last

    def _record(self, source: str, code: str, start: int, end: int) -> None:
        number, state = len(self.taken), self.fenced
        fence = Fence(
            header=state.first[len(state.ws) :],
            prefix=state.ws,
            language=state.lang or "",
            classes=tuple(state.classes),
            title=str(state.options.get("title", "")),
            text=state.rebuild_block(state.code),
            places=tuple(line.places for line in self.lines[start + 1 : end - 1]),
            opening=self.lines[start].places,
            closing=self.lines[end - 1].places,
        )
        self.taken.append((start, end, fence))
        self._store(source, f'<pre data-fence="{number}"></pre>', start, end)

    def read(self, lines: list[Line]) -> tuple[list[Fence], list[Stray], list[Line]]:
        """Return the blocks of a page, what only looks like one, and the lines outside."""
        self.lines, self.taken = lines, []
        self.html = self.md.reset().convert("\n".join(lines))
        seen = _Seen(self.html)
        inside = {n for start, end, _ in self.taken for n in range(start, end)}
        fences = [f for n, (_, _, f) in enumerate(self.taken) if n in seen.blocks]
        # a block that is neither seen nor in a comment was turned back into indented code
        lost = [
            Stray(lines[start], f.header, closed=True)
            for n, (start, _, f) in enumerate(self.taken)
            if n not in seen.blocks | seen.hidden
        ]
        strays = [_stray(lines[n]) for n in sorted(seen.strays)]
        return fences, lost + strays, [x for n, x in enumerate(lines) if n not in inside]


def _stray(line: Line) -> Stray:
    match = FENCE_LIKE.match(line)
    header = match["header"] if match else line.strip()
    return Stray(line, header, closed=False)


def is_fence(header: str) -> bool:
    """Whether SuperFences takes this opening line, if it is closed."""
    match = RE_NESTED_FENCE_START.match(header)
    if not match or match["unrecognized"]:
        return False
    keys = {option["key"] for option in RE_OPTIONS.finditer(match["options"] or "")}
    return keys <= {"title", "title_mode", "hl_lines", "linenums"}


@cache
def renderer(site: Site) -> Renderer:
    """The renderer of a site; building it loads every extension, so it is kept."""
    return Renderer(site)
