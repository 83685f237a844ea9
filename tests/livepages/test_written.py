"""A page's words, links, pictures and layout: each fault fails with its line and its cure."""

import pytest

from livepages import layout, links, site, words
from livepages.pages import read

from .conftest import MKDOCS, ROOT, says

THE = "t\u0065h"  # so that codespell does not find it here
OTHER = "# Other\n\n## Two words\n\n::: pack.thing\n"
GOOD = """\
# The page {#top}

## A heading

[here](#a-heading) [top](#top) [other](sub/other.md) [it](sub/other.md#two-words)
[thing](sub/other.md#pack.thing) [member][pack.thing.member] [elsewhere](https://example.org/x)
[mail](mailto:a@example.org) [angled](<sub/other.md>) [titled](sub/other.md "Title")
[a link over two
lines](sub/other.md) [by reference][ref] [download](files/data.csv)
![A circle](files/circle.svg) <img src="x.svg" alt="A square">
`[code](missing.md)` and ``![](`missing.svg)`` <!-- [hidden](missing.md) --> a [1][0]

[ref]: sub/other.md#two-words

```python
a = [1]
b = a[
    0]  # where a line breaks is the writer's choice
def f(x): return x
```

```text
[shown](missing.md) ![](missing.svg)
```
""".replace("def f(x): return x\n", "def f(x):\n    return x\n")


@pytest.fixture
def here(pages):
    """The good page's neighbours, and files."""
    pages.page(OTHER, "sub/other.md")
    pages.write("src/pack.py", "class thing:\n    member = 1\n")
    pages.write("docs/files/data.csv", "1\n")
    pages.write("docs/files/circle.svg", "<svg/>\n")
    return pages


def test_good_page_passes(here):
    here.passes(GOOD)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "# The page",
            f"# {THE} page",
            f"docs/p.md:1: {THE} is misspelt: the; if not, add it to ignore-words-list in",
            id="word",
        ),
        pytest.param(
            "a = [1]",
            f"a = [1]  # {THE} first",
            f"docs/p.md:16: {THE} is misspelt: the",
            id="word-in-code",
        ),
        pytest.param(
            "[other](sub/other.md)",
            "[other](sub/othr.md)",
            "docs/p.md:5: 'sub/othr.md' leads to no file below docs; did you mean sub/other.md?",
            id="link",
        ),
        pytest.param(
            "lines](sub/other.md)",
            "lines](other.md)",
            "docs/p.md:9: 'other.md' leads to no file below docs; did you mean sub/other.md?",
            id="link-on-the-second-line",
        ),
        pytest.param(
            "(#a-heading)",
            "(#heading)",
            "docs/p.md:5: '#heading': no heading of docs/p.md has that name; did you mean",
            id="anchor-here",
        ),
        pytest.param(
            "[it](sub/other.md#two-words)",
            "[it](sub/other.md#tow-words)",
            "docs/p.md:5: 'sub/other.md#tow-words': no heading of docs/sub/other.md has that name; "
            "did you mean two-words?",
            id="anchor-there",
        ),
        pytest.param(
            "[pack.thing.member]",
            "[pack.thin.member]",
            "docs/p.md:6: no page of the reference describes pack.thin.member; did you mean",
            id="reference",
        ),
        pytest.param(
            "[pack.thing.member]",
            "[pack.thing.membr]",
            "docs/p.md:6: pack.thing has no membr; did you mean member?",
            id="member",
        ),
        pytest.param(
            "#pack.thing)",
            "#pack.thing.membr)",
            "docs/p.md:6: pack.thing has no membr; did you mean member?",
            id="anchor-of-a-member",
        ),
        pytest.param(
            "[pack.thing.member]",
            "[pack.thing.member.deep.er]",
            "docs/p.md:6: there is no pack.thing.member.deep; see what the reference",
            id="below-a-member",
        ),
        pytest.param(
            "[ref]: sub/other.md",
            "[ref]: sub/others.md",
            "docs/p.md:13: 'sub/others.md#two-words' leads to no file below docs",
            id="definition",
        ),
        pytest.param(
            "[other](sub/other.md)", "[other]()", "docs/p.md:5: this link has no", id="no"
        ),
        pytest.param(
            "[other](sub/other.md)",
            "[other](/sub/other.md)",
            "docs/p.md:5: '/sub/other.md' fails where the site lies below a path",
            id="absolute",
        ),
        pytest.param(
            "(files/data.csv)", "(files/)", "docs/p.md:9: 'files/' leads to no", id="folder"
        ),
        pytest.param(
            "(files/data.csv)", "(../pyproject.toml)", "leads to no file below", id="outside"
        ),
        pytest.param(
            "![A circle](files/circle.svg)",
            "![A circle](files/circl.svg)",
            "docs/p.md:10: 'files/circl.svg' leads to no file below docs; did you mean",
            id="picture",
        ),
        pytest.param(
            "![A circle]",
            "![ ]",
            "docs/p.md:10: this picture has no alt text; say what it shows: ![what it",
            id="alt",
        ),
        pytest.param(
            'alt="A square"', 'alt=""', "docs/p.md:10: this picture has no alt", id="html"
        ),
        pytest.param(
            "a = [1]",
            "a=[1]",
            "docs/p.md:16: Missing whitespace around operator (ruff E225); write: a = [1]",
            id="space",
        ),
        pytest.param(
            "a = [1]",
            "a = ['x']",
            'double quotes preferred (ruff Q000); write: a = ["x"]',
            id="quotes",
        ),
        pytest.param(
            "    return x", "   return x", "docs/p.md:20: Indentation is not", id="indent"
        ),
        pytest.param(
            "a = [1]", "a = [1]; c = 2", "docs/p.md:16: Multiple statements", id="one-line"
        ),
        pytest.param("a = [1]", f"a = [{'1, ' * 50}]", "docs/p.md:16: Line too long", id="long"),
    ],
)
def test_fault_fails_with_its_line_and_its_cure(here, old, new, message):
    assert GOOD.count(old) == 1
    here.fails(GOOD.replace(old, new), message)


def test_blocks_of_a_page_with_faults_still_run(here):
    result = here.fails(GOOD.replace("a = [1]", "a=[1]"), "Missing whitespace")
    result.assert_outcomes(passed=3, failed=1)  # the block, the other page, the table


def test_every_fault_of_a_page_is_told_in_order(here):
    bad = GOOD.replace("![A circle]", "![]").replace("a = [1]", "a=[1]").replace("(#top)", "(#tip)")
    result = here.fails(bad)
    lines = [line for line in result.outlines if line.startswith("docs/p.md:")]
    assert [line.split(":")[1] for line in lines] == ["5", "10", "16"]


FORMULAS = """\
# P

Inline $\\lVert g\\rVert$, escaped \\$5 and \\$6, code `$\\no$` <!-- $\\no$ -->, and

$$
\\sum_k g_k^2
$$
"""


@pytest.fixture
def mathematical(here):
    """A site with formulas."""
    extensions = "  - pymdownx.arithmatex:\n      generic: true\n  - livepages.formulas\n"
    here.write("mkdocs.yml", MKDOCS + extensions)
    return here


def test_formulas_pass(mathematical):
    mathematical.passes(FORMULAS)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            r"\rVert",
            r"\rVet",
            r"docs/p.md:3: no formula: \lVert g\rVet: Unsupported function name: \rVet; write",
        ),
        ("g_k^2", "{g_k^2", r"docs/p.md:5: no formula: \sum_k {g_k^2: "),
        ("g_k^2", "g^2^2", "Double superscript"),
    ],
)
def test_formula_that_is_no_tex_fails_with_its_line(mathematical, old, new, message):
    mathematical.fails(FORMULAS.replace(old, new), message)


def test_dollars_are_no_formulas_on_a_site_without_them(here):
    here.passes(FORMULAS.replace(r"\rVert", r"\rVet"))


def test_included_code_is_left_to_its_own_file(here):
    here.write("snippets/a.py", "x=1\ny  =  [\n1]\n")
    text = '# P\n\n```python\nif True:\n    --8<-- "snippets/a.py"\n{}\n```\n'
    here.passes(text.format("z = x"))
    here.fails(text.format("z=x"), "docs/p.md:6: Missing whitespace around operator")


def test_syntax_error_is_told_by_the_block_alone(here):
    result = here.fails("# P\n\n```python\na = = 1\n```\n", "SyntaxError: invalid syntax")
    result.assert_outcomes(passed=3, failed=1)


def test_page_with_faults_can_be_linked_to(here):
    here.page("# Broken\n\n```py\n1\n```\n", "broken.md")
    here.page("# P\n\n[it](broken.md#anything)\n")
    result = here.run("docs/p.md")
    assert result.ret == 0


def test_ignored_words_are_those_of_the_settings(here):
    here.page("# The fro norm\n")
    says(here.run("docs/p.md"), "docs/p.md:1: fro is misspelt: for, fro")
    settings = (here.root / "pyproject.toml").read_text()
    here.write("pyproject.toml", f'{settings}\n[tool.codespell]\nignore-words-list = "fro"\n')
    words._misspelt.cache_clear()
    assert here.run("docs/p.md").ret == 0


def test_words_are_those_that_codespell_finds():
    wrong = words._misspelt(ROOT)
    assert wrong[THE] == "the"
    assert "fro" not in wrong
    assert len(wrong) > 50_000


@pytest.mark.parametrize("check", [words, links, layout])
def test_checks_see_every_page_of_this_site(check):
    here = site.load(ROOT)
    pages = [read(here, path) for path in here.pages()]
    assert sum(len(page.programs) for page in pages) > 100
    assert [str(fault) for page in pages for fault in check.faults(here, page)] == []
