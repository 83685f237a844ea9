"""Formulas: a Markdown extension that makes MathML of TeX, and the check of a page's TeX.

In `mkdocs.yml`, behind `pymdownx.arithmatex` with `generic: true`, which finds the TeX:

    markdown_extensions:
      - livepages.formulas

Browsers draw MathML themselves: pages load no script for it, and show it without any. The
converter is Temml, which is JavaScript and runs here, in V8, when the site is built.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from markdown import Markdown  # type: ignore[import-untyped]
from markdown.extensions import Extension  # type: ignore[import-untyped]
from markdown.treeprocessors import Treeprocessor  # type: ignore[import-untyped]
from py_mini_racer import JSEvalException, MiniRacer
from pymdownx.arithmatex import RE_SMART_DOLLAR_INLINE  # type: ignore[import-untyped]

from livepages.includes import Fault
from livepages.pages import Page, blanked
from livepages.site import Site

TEMML = Path(__file__).parent / "vendor" / "temml" / "temml.min.js"
WHY = re.compile(
    r"ParseError:\s*(?P<why>.*?)(?: at position \d+:| at end of input:|$)", re.MULTILINE
)
# as arithmatex finds them; what it finds besides, the build converts or refuses
DISPLAY = re.compile(r"(?<!\\)\$\$(?P<tex>.+?)(?<!\\)\$\$", re.DOTALL)
INLINE = re.compile(RE_SMART_DOLLAR_INLINE)


class FormulaError(ValueError):
    """TeX that Temml does not understand."""


@cache
def mathml(tex: str, display: bool) -> str:
    """Convert TeX, without its dollars."""
    if not tex.strip():
        raise FormulaError("no formula: it is empty; write what Temml knows")
    try:
        options = {"displayMode": display, "throwOnError": True}
        return str(_temml().call("temml.renderToString", tex, options))
    except JSEvalException as error:
        found = WHY.search(str(error))
        why = found["why"] if found else str(error)
        raise FormulaError(f"no formula: {tex.strip()}: {why}; write what Temml knows") from None


@cache
def _temml() -> MiniRacer:
    engine = MiniRacer()
    engine.eval(TEMML.read_text("utf-8"))
    return engine


def faults(site: Site, page: Page) -> Iterator[Fault]:
    """Yield every formula of a page that is not TeX."""
    if "livepages.formulas" not in site.extensions:
        return
    for start, tex, display in _formulas(page.prose):
        try:
            mathml(tex, display)
        except FormulaError as error:
            yield Fault(page.places_at(start), str(error))


def _formulas(text: str) -> Iterator[tuple[int, str, bool]]:
    for match in DISPLAY.finditer(text):
        yield match.start(), match["tex"], True
    for match in INLINE.finditer(DISPLAY.sub(blanked, text)):
        if match[3]:  # not a pair of backslashes in front of a dollar
            yield match.start(), match[3], False


class _ToMathML(Treeprocessor):  # type: ignore[misc]
    def run(self, root: Element) -> None:
        for element in root.iter():
            if element.get("class") == "arithmatex":
                tex = (element.text or "").strip()
                html = mathml(tex[2:-2], tex.startswith(r"\["))
                element.text = self.md.htmlStash.store(html)


class FormulaExtension(Extension):  # type: ignore[misc]
    """Puts MathML where arithmatex has found TeX."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 (Markdown's name)
        """Register behind the inline patterns (20), which are arithmatex's, too."""
        md.treeprocessors.register(_ToMathML(md), "livepages_formulas", 15)


def makeExtension(**options: Any) -> FormulaExtension:  # noqa: N802 (Markdown's name)
    """Return the extension, as Markdown asks for it."""
    return FormulaExtension(**options)
