"""Includes resolve as on the site, and every line keeps its place."""

import pytest
from markdown import Markdown
from pymdownx.snippets import SnippetPreprocessor

from livepages import site
from livepages.includes import Resolver

CLIP = """\
import math


# --8<-- [start:norm]
def norm(values):
    return math.sqrt(sum(v * v for v in values))
# --8<-- [end:norm]


class Holder:
    # --8<-- [start:method]
    def half(self):
        return 1 / 2
    # --8<-- [end:method]


# --8<-- [start:outer]
before = 1
# --8<-- [start:inner]
inner = 2
# --8<-- [end:inner]
after = 3
# --8<-- [end:outer]
"""

PAGE = """\
# Clip

```python
import math
--8<-- "snippets/clip.py:norm"
--8<-- "snippets/clip.py:outer"
assert norm([3, 4]) == 5.0 and inner == 2
```

!!! note

    ```python
    class Mine:
        --8<-- "snippets/clip.py:method"

    assert Mine().half() == 0.5
    --8<-- "snippets/nested.py"
    ```

```python
--8<-- "snippets/clip.py"
```

```text
;--8<-- "snippets/clip.py:norm"
```
"""


@pytest.fixture
def clip(pages):
    pages.write("snippets/clip.py", CLIP)
    pages.write("snippets/nested.py", 'first = 1\n--8<-- "snippets/clip.py:inner"\n')
    return pages


def test_page_with_includes_passes(clip):
    clip.passes(PAGE, passed=5)


def test_resolved_text_is_that_of_pymdown(clip):
    clip.page(PAGE)
    small = site.load(clip.root)
    resolver = Resolver(small)
    ours = resolver.expand("docs/p.md", PAGE)
    theirs = SnippetPreprocessor(small.snippet_options, Markdown()).run(PAGE.split("\n"))
    assert ours == theirs
    assert '--8<-- "snippets/clip.py:norm"' in theirs  # the escaped one
    assert not resolver.faults


def test_every_included_line_knows_its_file_and_line(clip):
    lines = Resolver(site.load(clip.root)).expand("docs/p.md", PAGE)
    for line in lines:
        path, number = line.places[-1]
        original = (PAGE if path == "docs/p.md" else (clip.root / path).read_text()).split("\n")
        assert line.strip().removeprefix("--8") in original[number - 1]
    inner = next(line for line in lines[20:] if line.strip() == "inner = 2")
    assert " -> ".join(map(str, inner.places)) == (
        "docs/p.md:17 -> snippets/nested.py:2 -> snippets/clip.py:20"
    )


def test_traceback_names_the_page_and_the_included_file(clip):
    result = clip.fails(
        PAGE.replace("import math\n", ""),
        "docs/p.md:6",
        "docs/p.md:4 -> snippets/clip.py:6, in norm",
        "NameError: name 'math' is not defined",
    )
    text = "\n".join(result.outlines)
    assert not [name for name in ("exec", "site-packages", "_pytest", "sybil") if name in text]


def test_error_in_an_indented_include_names_its_line(clip):
    clip.write("snippets/clip.py", CLIP.replace("1 / 2", "1 / 0"))
    clip.fails(PAGE, "docs/p.md:14 -> snippets/clip.py:13, in half return 1 / 0 ZeroDivisionError")


def test_include_with_windows_line_ends(clip):
    (clip.root / "snippets/clip.py").write_bytes(CLIP.replace("\n", "\r\n").encode())
    clip.passes(PAGE, passed=5)


NOT_UNDERSTOOD = "is not understood as an include and would be published"
UNRESOLVED = {
    "snippets/clipp.py": "there is no such file; did you mean snippets/clip.py?",
    "../secret.py": "includes '../secret.py', but there is no such file",
    "https://example.org/x.py": "there is no such file",
    "snippets/clip.py:nor": "snippets/clip.py has no section 'nor'; the sections there: norm,",
    "snippets/open.py:a": "section 'a' of snippets/open.py is never closed; add # --8<-- [end:a]",
    "snippets/clip.py:1:3": "includes by line number; mark a section",
    "snippets/clip.py:5": "includes by line number",
    "snippets/empty.py": "includes nothing",
    "snippets/loop.py": 'loop.py:1: --8<-- "snippets/loop.py" includes nothing, or includes itself',
}


@pytest.mark.parametrize(
    ("directive", "message"),
    [
        *((f'--8<-- "{target}"', message) for target, message in UNRESOLVED.items()),
        ('--8<-- "snippets/clip.py:norm" ', NOT_UNDERSTOOD),
        ("--8<-- snippets/clip.py:norm", NOT_UNDERSTOOD),
        ('# --8<-- "snippets/clip.py:norm"', NOT_UNDERSTOOD),
        ("--8<--", 'write each include as --8<-- "file:section"'),
    ],
)
def test_include_that_fails_says_why_and_where(clip, directive, message):
    clip.write("snippets/open.py", "# --8<-- [start:a]\n1\n")
    clip.write("snippets/empty.py", "")
    clip.write("snippets/loop.py", '--8<-- "snippets/loop.py"\n')
    result = clip.fails(f"# P\n\n```python\n{directive}\n```\n", "docs/p.md:4", message)
    result.assert_outcomes(errors=1, passed=1)


def test_fault_in_a_nested_include_names_both_lines(clip):
    clip.write("snippets/nested.py", 'a = 1\n--8<-- "snippets/clip.py:nope"\n')
    clip.fails(PAGE, "docs/p.md:17 -> snippets/nested.py:2: snippets/clip.py has no section 'nope'")


def test_included_output_is_compared(clip):
    clip.write("snippets/out.txt", "3\n")
    text = '```python\nprint({})\n```\n```text {{.output}}\n--8<-- "snippets/out.txt"\n```\n'
    clip.passes(text.format(3))
    clip.fails(text.format(4), "- 3 + 4")
