"""What runs is what the site shows as Python; everything that only looks so is refused."""

import re

import pytest
from markdown import Markdown

from livepages import fences, includes, site
from livepages import pages as page_data
from tests.livepages.conftest import ROOT, says

FORMS = """\
# All forms

```python
plain = 1
```

~~~python
tildes = 1
~~~

````python
four = 1
````

```python title="Titled" hl_lines="1" linenums="5"
titled = 1
```

```python {.gpu title="braces" hl_lines="1"}
gpu = 1
```

```python {.raises}
raise ValueError(plain)
```

```python {.ranks-2}
rank = 1
```

!!! note "Admonition"

    ```python
    admonished = 1

    def inside():
        return "kept indentation"
    ```

??? tip "Closed"

    ```python
    closed = 1
    ```

=== "One"

    ```python
    tab_one = 1
    ```

=== "Two"

    !!! note

        ```python
        tab_two = 1
        ```

- item

    ```python
    item = 1
    ```

    1. nested

        ```python
        nested = 1
        ```

        - deeper

            > ```python
            > quoted_in_list = 1
            > ```

> ```python
> quoted = 1
>
> still = quoted
> ```
>
> > ```python
> > twice_quoted = 1
> > ```

<div markdown>

```python
in_html = 1
```

</div>

````markdown
```python
never = "in an example"
```
````

~~~text
```python
never = "in tildes"
```
~~~

<!--
```python
never = "in a comment"
```
-->

<!-- a comment
on lines

```py
never = "wrong form in a comment"
```
-->

```pycon
>>> never
```

```bash
echo never
```

```yaml
never: 1
```

Inline ```code``` and `python`.

```text {.output}
never
```
"""


@pytest.mark.parametrize("settings", ["of these tests", "of this repository"])
def test_collected_blocks_are_the_rendered_ones(pages, settings):
    text = FORMS.replace("```text {.output}", "```text")
    path = pages.page(text)
    small = site.load(pages.root if settings == "of these tests" else ROOT)
    page = page_data.read(small, path)
    names = [name for name in small.extensions if name != "pymdownx.snippets"]
    html = Markdown(extensions=names, extension_configs=small.extensions).convert(text)
    shown = re.sub("<!--.*?-->", "", html, flags=re.DOTALL)
    blocks = re.findall(
        r'<div [^>]*class="language-(\w+)[^"]*highlight">.*?<code>(.*?)</code>', shown, re.S
    )
    rendered = [_text(code) for language, code in blocks if language == "python"]
    assert [p.fence.text for p in page.programs] == rendered
    assert len(rendered) == 17
    assert not any("never" in code for code in rendered)
    assert len(page.fences) == len(blocks)


def _text(html):
    code = re.sub("<[^>]*>", "", html).rstrip("\n")
    return (
        code.replace("&quot;", '"').replace("&gt;", ">").replace("&lt;", "<").replace("&#39;", "'")
    )


def test_places_are_the_lines_of_the_page(pages):
    path = pages.page(FORMS.replace("```text {.output}", "```text"))
    lines = path.read_text().split("\n")
    for program in page_data.read(site.load(pages.root), path).programs:
        texts = program.fence.text.split("\n")
        for text, (place,) in zip(texts, program.fence.places, strict=True):
            assert lines[place.line - 1].endswith(text)
        assert "python" in lines[program.place.line - 1]


@pytest.mark.parametrize(
    ("header", "found", "cure"),
    [
        ("```py", "'```py' looks like Python", "write ```python or"),
        ("```Python", "'```Python' looks like Python", "write ```python or"),
        ("```python3", "'```python3' looks like Python", "write ```python or"),
        ("``` { .python }", "looks like Python", "write ```python or"),
        ("```{.python}", "looks like Python", "write ```python or"),
        ("```{.python .gpu}", "looks like Python", "write ```python {.gpu} or"),
        ("```.python", "looks like Python", "write ```python or"),
        ("```python ", "'```python ' looks like Python", "write ```python or"),
        ("``` python", "'``` python' looks like Python", "write ```python or"),
        ("```python  {.gpu}", "looks like Python", "write ```python {.gpu} or"),
        ("```python {gpu}", "looks like Python", "write ```python {.gpu} or"),
        ("```python {#gpu}", "looks like Python", "write ```python {.gpu} or"),
        ("```python {.gpu skip}", "looks like Python", "write ```python {.gpu} or"),
        ("```python title='x'", "looks like Python", 'write ```python title="x" or'),
        ("```text {output}", "braces hold tags with a dot", "write ```text {.output}"),
        ("```python gpu", "is not a code block to the site", "write ```python {.gpu} on"),
        ('```python test="skip"', "is not a code block", "write ```python on"),
        ('```python title="x" {.gpu}', "is not a code block", 'write ```python {.gpu title="x"}'),
        (
            "```python {.gup}",
            "unknown tag '.gup'",
            "the known ones: python {.gpu}, python {.ranks-N}",
        ),
        ("```python {.ranks-1}", "unknown tag '.ranks-1'", "python {.ranks-N}"),
        ("```python {.gpu .raises}", "has 2 tags", "a block takes one"),
        ("```python {.output}", "'.output' belongs on text", "not on 'python'"),
        ("```text {.outputs}", "unknown tag '.outputs'", "text {.output}"),
        ("```{.output}", "names a tag but no language", "text {.output}"),
        ("- ```python", "is not a code block", "on a line of its own"),
        ("```", "names no language", "write ```text"),
    ],
)
def test_uncollectable_fence_fails_and_says_how_to_write_it(pages, header, found, cure):
    result = pages.fails(f"# Page\n\n{header}\n1 / 0\n```\n", "docs/p.md:3:", found, cure)
    result.assert_outcomes(errors=1, passed=1)
    assert result.ret == 1


def test_fence_that_is_never_closed_fails(pages):
    pages.fails("```python\n1 / 0\n", "docs/p.md:1: '```python' is never closed")


def test_fence_that_is_indented_too_deep_fails(pages):
    pages.fails(
        "- item\n\n        ```python\n        1\n        ```\n", "docs/p.md:3:", "indented so deep"
    )


def test_misindented_closing_line_fails(pages):
    pages.fails(
        "!!! note\n\n    ```python\n    1\n```\n", "docs/p.md:3: '```python' is never closed"
    )


def test_all_faults_of_a_page_are_shown_and_other_pages_run(pages):
    pages.page("```python\npass\n```\n", "good.md")
    result = pages.fails(
        "```py\n1\n```\n\n```python {.gup}\n1\n```\n", "docs/p.md:1:", "docs/p.md:5:"
    )
    result.assert_outcomes(errors=1, passed=3)


def test_faults_are_shown_by_a_parallel_run(pages):
    pages.page("```py\n1\n```\n")
    pages.count()
    result = pages.pytester.runpytest_subprocess("docs", "-n", "1", "-p", "no:hypothesispytest")
    says(result, "docs/p.md:1: '```py' looks like Python")
    assert result.ret == 1


def test_a_block_of_a_faulty_page_asked_by_id_shows_the_fault(pages):
    pages.page("```py\n1\n```\n\n```python\n1\n```\n")
    result = pages.run("docs/p.md::block-1")
    assert result.ret != 0
    says(result, "docs/p.md:1: '```py' looks like Python")


def test_output_without_a_program_fails(pages):
    pages.fails(
        "```bash\nls\n```\n\n```text {.output}\n1\n```\n", "docs/p.md:5: this output has no program"
    )
    pages.fails("```text {.output}\n1\n```\n", "docs/p.md:1: this output has no program")


def test_two_outputs_of_one_program_fail(pages):
    output = "```text {.output}\n1\n```\n\n"
    pages.fails(f"```python\nprint(1)\n```\n\n{output}{output}", "docs/p.md:9: this output has no")


def test_program_in_an_included_page_fails(pages):
    pages.write("snippets/part.md", "```python\n1 / 0\n```\n")
    pages.fails(
        '# P\n\n--8<-- "snippets/part.md"\n', "docs/p.md:3 -> snippets/part.md:1: a program must"
    )


def test_shown_blocks_do_not_run(pages):
    text = "".join(
        f"```{name}\n1 / 0\n```\n\n" for name in ("text", "pycon", "bash", "yaml", "diff")
    )
    pages.passes(text, passed=2)


def test_every_tag_is_known_to_the_table():
    from livepages import tags

    assert tags.find("ranks-16").number == 16
    assert tags.find("ranks-17") is tags.find("ranks-02") is tags.find("gpus") is None
    assert tags.known() == "python {.gpu}, python {.ranks-N}, python {.raises}, text {.output}"


def test_renderer_requires_superfences(pages):
    pages.write("mkdocs.yml", "site_name: x\n")
    with pytest.raises(TypeError, match=r"must list pymdownx\.superfences"):
        fences.Renderer(site.Site(pages.root, pages.root / "docs", {"fenced_code": {}}))


def test_line_keeps_its_places_behind_an_indentation():
    line = includes.Line("a", (includes.Place("f", 1),))
    assert ("  " + line, ("  " + line).places) == ("  a", line.places)
