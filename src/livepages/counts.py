"""How many blocks each page executes: one table, so that a page cannot silently stop testing."""

import tomllib
from collections.abc import Iterable
from pathlib import Path

from livepages.pages import Page, PageError, read
from livepages.site import Site

NAME = ".blocks.toml"  # hidden, so that it is not published
FLAG = "--update-counts"
HEAD = f"""\
# How many blocks of each page the tests execute, and how many outputs they compare.
# Written by: pytest docs {FLAG}
"""

Table = dict[str, dict[str, int]]


def load(site: Site) -> Table:
    """Read the table, empty if there is none yet."""
    file = site.docs / NAME
    return tomllib.loads(file.read_text("utf-8")) if file.exists() else {}


def fault_of(site: Site, page: Page) -> str | None:
    """Say how a page differs from the table, None if it does not."""
    name = page.path.removeprefix(site.relative(site.docs) + "/")
    expected = load(site).get(name)
    if expected is None:
        return f"{page.path} is not in the table of counts; run: pytest {page.path} {FLAG}"
    if expected == page.counts:
        return None
    return (
        f"{page.path} has {_spell(page.counts)}, the table says {_spell(expected)}; "
        f"if the page is right: pytest {page.path} {FLAG}"
    )


def fault_of_table(site: Site) -> str | None:
    """Name the pages that only the table has, None if there are none."""
    pages = {path.relative_to(site.docs).as_posix() for path in site.pages()}
    gone = ", ".join(sorted(load(site).keys() - pages))
    return f"no such page: {gone}; if that is right: pytest docs {FLAG}" if gone else None


def update(site: Site) -> None:
    """Count every page anew; a page with faults keeps its entry until it can be counted."""
    before, table = _readable(site), {}
    for path in site.pages():
        name = path.relative_to(site.docs).as_posix()
        try:
            table[name] = read(site, path).counts
        except PageError:
            table |= {name: before[name]} if name in before else {}
    _write(site, table)


def add(site: Site, path: Path) -> None:
    """Count one new page, and leave the others as they are."""
    name = path.relative_to(site.docs).as_posix()
    _write(site, load(site) | {name: read(site, path).counts})


def _write(site: Site, table: Table) -> None:
    (site.docs / NAME).write_text(HEAD + "\n" + "\n".join(_lines(table)) + "\n", "utf-8")


def _readable(site: Site) -> Table:
    """The table as it is, empty if a merge has broken it: it is about to be written anew."""
    try:
        return load(site)
    except tomllib.TOMLDecodeError:
        return {}


def _lines(table: Table) -> Iterable[str]:
    for name, counts in sorted(table.items()):
        numbers = ", ".join(f"{kind} = {number}" for kind, number in sorted(counts.items()))
        yield f'"{name}" = {{ {numbers} }}' if numbers else f'"{name}" = {{}}'


def _spell(counts: dict[str, int]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in counts.items()) or "no blocks"
