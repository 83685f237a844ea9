"""Whatever a page looks like: what is collected is what the site renders, or the page is refused.

The other side is the site's own way: MkDocs' reading of a file, Markdown with the site's
extensions and highlighting, and the published-site check's reading of the HTML.
"""

import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, example, given, settings, target
from hypothesis import strategies as st
from markdown import Markdown
from mkdocs.utils.meta import get_data

from livepages import pages as page_data
from livepages import site as sites
from livepages.fences import PYTHON
from livepages.html import PublishedPage
from tests.livepages.conftest import MKDOCS

HOUSE = [
    "```python",
    "~~~python",
    "````python",
    '```python title="A title"',
    '```python {title="braces" hl_lines="1"}',
    "```python {.gpu}",
    "```python {.raises}",
    "```python {.ranks-2}",
]
SHOWN = ["```text", "```bash", "````markdown", "~~~yaml", "```pycon"]
ODD = [
    "```py",
    "```python ",
    "``` python",
    "```python3 {.gpu}",
    "```{.python}",
    "``` {.python .gpu}",
    "```python gpu",
    "```python {.gup}",
    "```python title='x'",
    "```",
    "~~~",
    "````",
    "- ```python",
    "1. ~~~python",
    "> ```python",
    "`python`",
    "```python```",
    "<!--",
    "-->",
    "<!-- ```python -->",
    "<pre>",
    "</pre>",
    "<div markdown>",
    "</div>",
    "<details>",
]
TEXT = [
    "a paragraph",
    "# Heading",
    "Setext\n======",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "- item\n- item",
    "`code` and **bold**",
    "[link](x.md)",
    "***",
    "Term\n:   Definition",
    "$x$",
    "",
]
CODE = [
    "x = 1",
    "def f():\n    return 2",
    "",
    "# a comment",
    "print('<b>&amp;')",
    "    kept",
    "> 1",
]
CONTAINERS = ["note", "details", "tab", "item", "number", "quote", "html"]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> sites.Site:
    root = tmp_path_factory.mktemp("fuzzed")
    (root / "docs").mkdir()
    (root / "mkdocs.yml").write_text(MKDOCS)
    return sites.load(root)


def _within(container: str, text: str, indent: str) -> str:
    """The text in a container, as a writer would indent it."""
    if container == "quote":
        return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
    if container == "html":
        return f"<div markdown>\n\n{text}\n\n</div>"
    heads = {"note": '!!! note "N"', "details": "??? tip", "tab": '=== "T"', "item": "- item"}
    return f"{heads.get(container, '1. one')}\n\n{textwrap.indent(text, indent)}"


@st.composite
def fence(draw: st.DrawFn, headers: list[str]) -> str:
    header = draw(st.sampled_from(headers))
    mark = header[: len(header) - len(header.lstrip("`~"))]
    return "\n".join([header, *draw(st.lists(st.sampled_from(CODE), max_size=3)), mark])


def nested(piece: st.SearchStrategy[str], indents: list[str]) -> st.SearchStrategy[str]:
    """Pieces below each other, in containers, in containers of containers."""

    def wrap(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        contents = st.lists(inner, min_size=1, max_size=3).map("\n\n".join)
        return st.builds(_within, st.sampled_from(CONTAINERS), contents, st.sampled_from(indents))

    return st.recursive(piece, wrap, max_leaves=6)


def page(piece: st.SearchStrategy[str], indents: list[str], gaps: list[str]) -> st.SearchStrategy:
    parts = st.lists(st.tuples(nested(piece, indents), st.sampled_from(gaps)), max_size=6)
    return parts.map(lambda pairs: "# Page\n\n" + "".join(text + gap for text, gap in pairs))


WELL_FORMED = page(fence(HOUSE) | fence(SHOWN) | st.sampled_from(TEXT), ["    "], ["\n\n"])
SOUP = page(
    fence(HOUSE + SHOWN + ODD) | st.sampled_from(TEXT + ODD + HOUSE),
    ["    ", "\t", "  ", "   ", "     ", "        "],
    ["\n\n", "\n", "\n\n\n", " \n", "\n \n"],
)
BEGINNINGS = ["", "\ufeff", "---\ntitle: T\n---\n", "\ufeff---\ntags: [a]\n---\n\n", "\n\n"]


def rendered(site: sites.Site, path: Path) -> list[str]:
    """The Python that the site would show of the file, in order."""
    # as mkdocs.structure.pages reads it
    body, _ = get_data(path.read_text("utf-8-sig"))
    names = [name for name in site.extensions if name != "pymdownx.snippets"]
    html = Markdown(extensions=names, extension_configs=site.extensions).convert(body)
    blocks = PublishedPage(f"<html><body>{html}</body></html>").blocks
    return [_bare(block.text) for block in blocks if block.language in PYTHON]


def collected(site: sites.Site, path: Path) -> list[str]:
    return [_bare(program.fence.text) for program in page_data.read(site, path).programs]


def _bare(code: str) -> str:
    # highlighting strips blank lines around the code, and expands no tab
    return code.strip("\n").rstrip()


def written(site: sites.Site, text: str, newline: str) -> Path:
    path = site.docs / "p.md"
    path.write_bytes(text.replace("\n", newline).encode())
    return path


fuzzed = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@fuzzed
@given(WELL_FORMED, st.sampled_from(BEGINNINGS), st.sampled_from(["\n", "\r\n"]))
def test_a_well_formed_page_is_collected_as_it_renders(site, text, beginning, newline):
    path = written(site, beginning + text, newline)
    programs = collected(site, path)
    target(len(programs))
    assert programs == rendered(site, path)
    # nothing that was written as a program was lost on both sides
    openings = [line.lstrip("> ") for line in text.split("\n")]
    assert len(programs) == sum(line.strip() in HOUSE for line in openings)


@fuzzed
@given(SOUP, st.sampled_from(BEGINNINGS), st.sampled_from(["\n", "\r\n", "\r"]))
@example("- ```python\n  x\n  ```\n", "", "\n")
@example("    ```python\n    x = 1\n    ```\n", "", "\r\n")
@example("```python\n\tx = 1\n```\n\n> ```python\n> y\n```\n", "\ufeff", "\n")
def test_any_page_is_collected_as_it_renders_or_refused_with_its_line(
    site, text, beginning, newline
):
    path = written(site, beginning + text, newline)
    shown = rendered(site, path)
    try:
        programs = collected(site, path)
    except page_data.PageError as error:
        event(f"refused, {min(len(shown), 2)} programs or more shown")
        lines = path.read_text("utf-8-sig").count("\n") + 1
        places = [fault.places[0].line for fault in error.faults]
    else:
        event(f"collected, {min(len(programs), 2)} programs or more")
        assert programs == shown
        return
    assert places
    assert all(1 <= line <= lines for line in places)
