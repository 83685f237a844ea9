"""The links and pictures of a page, checked at their lines; a strict build names no line."""

import difflib
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import griffe

from livepages.includes import Fault
from livepages.pages import Page, PageError, read
from livepages.site import Site

TARGET = re.compile(
    r"\]\(\s*<?(?P<target>[^)\s>]*)|^ {0,3}\[[^\]^]+\]:\s+<?(?P<defined>[^\s>]+)", re.MULTILINE
)
NAMED = re.compile(r"\]\[(?P<name>[A-Za-z_]\w*(?:\.\w+)+)\]")
NAMELESS = re.compile(r"!\[\s*\]\(|<img\b(?![^>]*\balt=[\"'][^\"'>])[^>]*>")
DOCUMENTED = re.compile(r"^::: (\S+)", re.MULTILINE)


def faults(site: Site, page: Page) -> Iterator[Fault]:
    """Yield every link of a page that leads nowhere, and every picture without words."""
    for match, message in _messages(site, page):
        yield Fault(page.places_at(match.start()), message)


def _messages(site: Site, page: Page) -> Iterator[tuple[re.Match[str], str]]:
    for match in TARGET.finditer(page.prose):
        if message := _fault_of_target(site, page, match["target"] or match["defined"] or ""):
            yield match, message
    for match in NAMED.finditer(page.prose):
        if message := _fault_of_name(site, match["name"]):
            yield match, message
    for match in NAMELESS.finditer(page.prose):
        yield match, "this picture has no alt text; say what it shows: ![what it shows](file.svg)"


def _fault_of_target(site: Site, page: Page, target: str) -> str | None:
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|//", target):
        return None  # another site: no test asks it
    if not target:
        return "this link has no target; write [text](page.md)"
    if target.startswith("/"):
        return f"{target!r} fails where the site lies below a path; write it from this page on"
    path, _, anchor = target.partition("#")
    here = site.root / page.path
    file = Path(os.path.normpath(here.parent / unquote(path))) if path else here
    if not file.is_file() or not file.is_relative_to(site.docs):
        files = [os.path.relpath(f, here.parent).replace(os.sep, "/") for f in _files(site)]
        return f"{target!r} leads to no file below docs{_near(path, files)}"
    if not anchor or file.suffix != ".md":
        return None
    anchors = page.anchors if file == here else _anchors(site, file)
    if anchors is None or anchor in anchors:
        return None
    if any(anchor.startswith(f"{name}.") for name in anchors):
        return _fault_of_member(site, anchor)
    return f"{target!r}: no heading of {site.relative(file)} has that name{_near(anchor, anchors)}"


def _fault_of_name(site: Site, name: str) -> str | None:
    documented = _documented(site)
    if name in documented or name.partition(".")[0] not in {
        n.partition(".")[0] for n in documented
    }:
        return None
    if not any(name.startswith(f"{found}.") for found in documented):
        return f"no page of the reference describes {name}{_near(name, documented)}"
    return _fault_of_member(site, name)


def _fault_of_member(site: Site, name: str) -> str | None:
    owner, _, member = name.rpartition(".")
    try:
        members = _object(site, owner).all_members
    except (KeyError, ImportError):
        return f"there is no {owner}; see what the reference describes"
    return None if member in members else f"{owner} has no {member}{_near(member, members)}"


@cache
def _object(site: Site, name: str) -> griffe.Object | griffe.Alias:
    """What the reference says of a name, read as mkdocstrings reads it: without importing it."""
    package, _, rest = name.partition(".")
    found = griffe.load(package, search_paths=[site.root / "src"], allow_inspection=False)
    return found[rest] if rest else found


@cache
def _documented(site: Site) -> frozenset[str]:
    """Every name that a page of the reference describes."""
    texts = [path.read_text("utf-8-sig") for path in site.pages()]
    return frozenset(name for text in texts for name in DOCUMENTED.findall(text))


@cache
def _anchors(site: Site, path: Path) -> frozenset[str] | None:
    """The names in a page that links may lead to, None if it has faults and cannot be read."""
    try:
        page = read(site, path)
    except PageError:
        return None
    return page.anchors | set(DOCUMENTED.findall(page.text))


def _files(site: Site) -> Iterable[Path]:
    return (path for path in site.docs.rglob("*.*") if path.is_file())


def _near(wanted: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(wanted, sorted(known), 1)
    return f"; did you mean {near[0]}?" if near else ""
