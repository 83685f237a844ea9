"""A Markdown extension: the list of all exercises, made from their front matter.

In `mkdocs.yml`:

    markdown_extensions:
      - livepages.roadmap

In a page of docs/exercises, alone on a line:

    <!-- roadmap -->

Without JavaScript readers get the list with its links. What needs JavaScript (ticks, filters,
progress) is hidden until docs/assets/exercises/roadmap.js shows it.
"""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from markdown import Markdown  # type: ignore[import-untyped]
from markdown.blockprocessors import BlockProcessor  # type: ignore[import-untyped]
from markdown.extensions import Extension  # type: ignore[import-untyped]
from markdown.util import HTML_PLACEHOLDER_RE, AtomicString  # type: ignore[import-untyped]

from livepages import site as sites
from livepages.exercises import DIFFICULTIES, Exercise, load, tags_of

PLACEHOLDER = "<!-- roadmap -->"
STATES = ("open", "solved")


class _Roadmap(BlockProcessor):  # type: ignore[misc]
    def test(self, parent: Element, block: str) -> bool:
        """Whether the block is the comment, which Markdown has stashed as raw HTML."""
        found = HTML_PLACEHOLDER_RE.fullmatch(block.strip())
        stash = self.parser.md.htmlStash.rawHtmlBlocks
        return bool(found) and str(stash[int(found[1])]).strip() == PLACEHOLDER

    def run(self, parent: Element, blocks: list[str]) -> None:
        del blocks[0]
        parent.append(roadmap(load(sites.load(Path.cwd()).docs)))


def roadmap(exercises: list[Exercise]) -> Element:
    """Return the list, with the controls that a script shows."""
    root = Element("div", {"class": "roadmap"})
    _add_progress(root, len(exercises))
    _add_filters(root, exercises)
    for group, members in groupby(exercises, key=lambda exercise: exercise.group):
        section = SubElement(root, "section")
        _add(section, "h2", group)
        items = SubElement(section, "ul", {"class": "roadmap-list"})
        for exercise in members:
            _add_exercise(items, exercise)
    _add_keeping(root)
    return root


def _add(parent: Element, tag: str, text: str = "", **attributes: str) -> Element:
    """Add an element whose text is no Markdown; `class_` and `for_` are spelled so in Python."""
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    element = SubElement(parent, tag, named)
    element.text = AtomicString(text)
    element.tail = " "
    return element


def _add_progress(root: Element, number: int) -> None:
    block = _add(root, "div", class_="roadmap-progress", hidden="hidden")
    bar = {"aria_valuemin": "0", "aria_valuenow": "0", "aria_valuemax": str(number)}
    _add(block, "div", role="progressbar", aria_label="Exercises solved", **bar)
    _add(block, "span", class_="roadmap-count")
    finish = _add(root, "p", class_="roadmap-finish", hidden="hidden")
    finish.text = AtomicString(f"All {number} exercises are solved. From here, use ")
    _add(finish, "a", "gradstep", href="../reference/index.md").tail = AtomicString(
        " in a loop of your own."
    )


def _add_filters(root: Element, exercises: Iterable[Exercise]) -> None:
    form = _add(root, "form", class_="roadmap-filters", aria_label="Filter", hidden="hidden")
    for name, values in (
        ("tag", tags_of(exercises)),
        ("difficulty", DIFFICULTIES),
        ("state", STATES),
    ):
        label = _add(form, "label", name.capitalize())
        select = _add(label, "select", name=name)
        for value in ("", *values):
            _add(select, "option", value or "all", value=value)
    _add(form, "button", "Show all", type="reset")
    _add(form, "span", class_="roadmap-shown", role="status")


def _add_exercise(items: Element, exercise: Exercise) -> None:
    item = _add(
        items,
        "li",
        data_slug=exercise.slug,
        data_difficulty=exercise.difficulty,
        data_tag=" ".join(exercise.tags),
    )
    _add(item, "span", class_="roadmap-tick")
    _add(item, "a", exercise.title, href=f"{exercise.slug}/index.md")
    facts = _add(item, "span", class_="roadmap-facts")
    _add(facts, "span", exercise.difficulty, class_=f"roadmap-{exercise.difficulty}")
    _add(facts, "span", f"{exercise.minutes} min")
    for tag in exercise.tags:
        _add(facts, "span", tag, class_="roadmap-tag")


def _add_keeping(root: Element) -> None:
    section = _add(root, "div", class_="roadmap-keeping", hidden="hidden")
    text = "Your progress is kept in this browser only. Export it to move it, or to be safe."
    _add(section, "p", text)
    row = _add(section, "p")
    _add(row, "button", "Export", type="button")
    label = _add(row, "label", "Import a file")
    _add(label, "input", type="file", accept=".json,application/json")
    _add(section, "div", class_="roadmap-news", role="status")
    _add(section, "ul", class_="roadmap-problems")


class RoadmapExtension(Extension):  # type: ignore[misc]
    """Puts the list where the placeholder stands."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 (Markdown's name)
        """Register before md_in_html (105), which takes every stashed block."""
        md.parser.blockprocessors.register(_Roadmap(md.parser), "livepages_roadmap", 106)


def makeExtension(**options: Any) -> RoadmapExtension:  # noqa: N802 (Markdown's name)
    """Return the extension, as Markdown asks for it."""
    return RoadmapExtension(**options)
