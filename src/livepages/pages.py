"""A page as data: its programs in order, their names, headings and expected output."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mkdocs.utils.meta import get_data

from livepages import house, tags
from livepages.fences import Fence, Stray, renderer
from livepages.includes import Fault, Line, Place, Resolver
from livepages.site import Site

HEADING = re.compile(r"(#{1,6})[ \t]+(?P<text>.*?)(?:[ \t]+#+)?(?:[ \t]+\{[^{}]*\})?[ \t]*$")
ANCHOR = re.compile(r"<[^>]*\bid=\"([^\"]+)\"")
# what is neither a link nor a formula, however it looks: code, and what the site hides
HIDDEN = re.compile(r"<!--.*?-->|(?<!`)(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)", re.DOTALL)
WHOLE = "page"  # the name of the test that every page has besides its blocks


def blanked(match: re.Match[str]) -> str:
    """As many characters on as many lines, of which none means anything."""
    return re.sub(r"[^\n]", "x", match[0])


class PageError(Exception):
    """A page that cannot be tested as it stands, with everything that is wrong with it."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        """Order the faults as they stand on the page."""
        self.faults = sorted(faults, key=lambda fault: fault.places)
        super().__init__("\n".join(map(str, self.faults)))


@dataclass(frozen=True)
class Program:
    """A block that tests execute.

    Args:
        page: path below the root.
        name: unique on the page, from its title or its ordinal; does not depend on lines.
        heading: the headings above it, outermost first.
        use: its tag, None for a plain block.
        fence: the block itself.
        output: the fence that shows what it prints, None without one.
    """

    page: str
    name: str
    heading: str
    use: tags.Use | None
    fence: Fence
    output: Fence | None

    @property
    def id(self) -> str:
        """How pytest names it; also the file name of its code."""
        return f"{self.page}::{self.name}"

    @property
    def kind(self) -> str:
        """python, gpu, ranks or raises."""
        return self.use.tag.kind if self.use else "python"

    @property
    def is_leaf(self) -> bool:
        """Whether later blocks see nothing of it."""
        return self.kind in {"gpu", "ranks"}

    @property
    def place(self) -> Place:
        """Where its fence opens."""
        return self.fence.opening[0]


@dataclass(frozen=True)
class Page:
    """A page that can be tested.

    Args:
        path: below the root.
        text: as read, without byte order mark and with plain line ends.
        fences: every code block that a reader sees.
        programs: those that tests execute, in page order.
        outside: the lines that belong to no code block, includes resolved.
        anchors: the names in it that links may lead to.
    """

    path: str
    text: str
    fences: tuple[Fence, ...]
    programs: tuple[Program, ...]
    outside: tuple[Line, ...]
    anchors: frozenset[str]

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many blocks of each kind tests execute, and how many outputs they compare."""
        counts = Counter(program.kind for program in self.programs)
        counts["output"] = sum(program.output is not None for program in self.programs)
        return {kind: number for kind, number in sorted(counts.items()) if number}

    @cached_property
    def prose(self) -> str:
        """The text outside of code blocks, with an x for each character of code or a comment."""
        text = "".join(f"{line}\n" for line in self.outside)
        return HIDDEN.sub(blanked, text)

    def places_at(self, position: int) -> tuple[Place, ...]:
        """Where a character of the prose stands."""
        return self.outside[self.prose.count("\n", 0, position)].places


def read(site: Site, path: Path) -> Page:
    """Read and parse one page.

    Raises:
        PageError: if a fence or an include would not be tested as it is shown.
    """
    return parse(site, path, path.read_text("utf-8-sig"))


def parse(site: Site, path: Path, text: str) -> Page:
    """Parse the text of one page; see `read`."""
    name = site.relative(path)
    resolver = Resolver(site)
    lines = resolver.expand(name, _without_front_matter(text))
    fences, strays, outside = renderer(site).read(lines)
    faults = [*resolver.faults, *_faults(fences, strays), *_loose_outputs(fences)]
    if faults:
        raise PageError({fault.places: fault for fault in reversed(faults)}.values())
    programs = tuple(_programs(name, fences, outside))
    anchors = frozenset(ANCHOR.findall(renderer(site).html))
    return Page(name, text, tuple(fences), programs, tuple(outside), anchors)


def _without_front_matter(text: str) -> str:
    # MkDocs takes the front matter away before Markdown sees the page; line numbers stay
    body, _ = get_data(text)
    head = text[: len(text) - len(body)] if text.endswith(body) else ""
    return "\n" * head.count("\n") + text[len(head) :]


def _faults(fences: list[Fence], strays: list[Stray]) -> list[Fault]:
    of_fences = [(f, Fault(f.opening, m)) for f in fences if (m := house.fault_of(f))]
    of_strays = [(s, Fault(s.line.places, house.fault_of_stray(s))) for s in strays]
    # an opening line that does not open makes the next closing line look like an opening
    causes = [fault for found, fault in of_fences + of_strays if not house.is_bare(found.header)]
    return causes or [fault for _, fault in of_fences + of_strays]


def _use(fence: Fence) -> tags.Use | None:
    return tags.find(fence.classes[0]) if fence.classes else None


def _is_output(fence: Fence) -> bool:
    use = _use(fence)
    return use is not None and use.tag.kind == "output"


def _loose_outputs(fences: list[Fence]) -> Iterator[Fault]:
    for before, fence in zip([None, *fences], fences, strict=False):
        if _is_output(fence) and not (before and before.is_python):
            yield Fault(
                fence.opening,
                "this output has no program: the block before it is "
                f"{before.header if before else 'missing'}; put it behind the ```python block "
                "that prints it, or write ```text",
            )


def _programs(page: str, fences: list[Fence], outside: list[Line]) -> Iterator[Program]:
    taken: set[str] = {WHOLE}
    ordinal = 0
    for fence, after in zip(fences, [*fences[1:], None], strict=False):
        if not fence.is_python:
            continue
        ordinal += 1
        name = _unique(_slug(fence.title) or f"block-{ordinal}", taken)
        output = after if after and _is_output(after) else None
        yield Program(page, name, _heading(fence, outside), _use(fence), fence, output)


def _slug(title: str) -> str:
    return re.sub(r"[^\w.]+", "-", title.lower()).strip("-.")


def _unique(name: str, taken: set[str]) -> str:
    names = [name, *(f"{name}-{n}" for n in range(2, len(taken) + 3))]
    free = next(candidate for candidate in names if candidate not in taken)
    taken.add(free)
    return free


def _heading(fence: Fence, outside: list[Line]) -> str:
    path: dict[int, str] = {}
    for line in outside:
        if line.places >= fence.opening:
            break
        if match := HEADING.match(line):
            level = len(match[1])
            path = {n: text for n, text in path.items() if n < level} | {level: match["text"]}
    return " > ".join(text for _, text in sorted(path.items()))
