"""The published site shows the tested blocks and nothing unrendered."""

import pytest
from markdown import Markdown

from livepages import check, site

PAGE = """\
# P

```python title="x" linenums="1"
if 1 < 2:
    print("<&>")
```

```text {.output}
<&>
```

!!! note

    ```python
    --8<-- "snippets/a.py"
    ```

```bash
ls
```

Inline `--8<--` and `Traceback (most recent call last)`.
"""


@pytest.fixture
def built(pages):
    """Builds the page as MkDocs does, without a theme."""
    pages.write("snippets/a.py", "a = 1\n")
    pages.page(PAGE)

    def build(text=PAGE, head="", change=lambda html: html):
        small = site.load(pages.root)
        html = Markdown(
            extensions=list(small.extensions),
            extension_configs={
                **small.extensions,
                "pymdownx.snippets": {**small.snippet_options, "base_path": [str(pages.root)]},
            },
        ).convert(text)
        pages.write(
            "site/p/index.html", f"<html><head>{head}</head><body>{change(html)}</body></html>"
        )
        return list(check.faults(small, pages.root / "site"))

    return build


def test_site_as_tested_passes(built):
    assert built() == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('print("<&>")', 'print("<>")', "a Python block that no test saw starts 'if 1 < 2:'"),
        (
            'print("<&>")',
            'print("<>")',
            "docs/p.md:3 is not published as tested (```python",
        ),
        ("```bash\nls\n```\n", "", "docs/p.md:18 is not published as tested (```bash)"),
        ("```bash\nls", "```py\nls", "a Python block that no test saw starts 'ls'"),
        ("Inline", "--8&lt;-- then", "an include was not resolved: '--8<-- then"),
        ("Inline", "Traceback (most recent call last):", "a traceback stands in the text"),
        ("Inline", "\\`\\`\\`python", "a fence was not rendered"),
        ("ls\n", "", "a code block is empty"),
    ],
)
def test_difference_between_site_and_tests_is_named(built, old, new, message):
    assert any(message in fault for fault in built(PAGE.replace(old, new)))


@pytest.mark.parametrize(
    "head",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<script src="//cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="https://fonts.example/x.css">',
        '<link rel="preconnect" href="https://fonts.example">',
        '<img src="https://img.example/x.png">',
        '<img srcset="a.png 1x, https://img.example/x.png 2x">',
        '<style>body { background: url("https://img.example/x.png") }</style>',
        '<style>@import "https://fonts.example/x.css";</style>',
        '<p style="background: url(https://img.example/x.png)">x</p>',
        '<iframe src="https://video.example/1"></iframe>',
    ],
)
def test_request_to_another_host_is_named(built, head):
    (fault,) = built(head=head)
    assert "from another host" in fault
    assert "example" in fault


@pytest.mark.parametrize(
    "head",
    [
        '<a href="https://github.com/x">x</a>',
        '<link rel="canonical" href="https://elsewhere.example/">',
        '<link rel="stylesheet" href="https://example.org/small/x.css">',
        '<script src="../x.js"></script>',
        '<img src="data:image/png;base64,AAAA">',
        '<script>var s = "https://cdn.example/x.js"</script>',
    ],
)
def test_links_and_own_files_are_fine(built, head):
    assert built(head=head) == []


def test_stylesheet_that_loads_from_another_host_is_named(built, pages):
    pages.write("site/x.css", "@font-face { src: url(https://fonts.example/f.woff2) }")
    assert built() == ["site/x.css: loads https://fonts.example/f.woff2 from another host"]


def test_api_pages_are_left_to_doctest(built):
    code = '<div class="language-python highlight"><pre><code>f()</code></pre></div>'
    assert built(change=lambda page: f'{page}<div class="doc doc-object">{code}</div>') == []
    assert built(change=lambda page: page + code) != []


def test_one_difference_is_one_fault(built):
    assert len(built(PAGE.replace("# P", "# P\n\n```python\nnew = 1\n```\n"))) == 1


def test_indented_block_is_no_program(built):
    assert built(PAGE + "\n\n    indented = 1\n") == []


def test_unpublished_page_and_empty_folder_are_named(built, pages, capsys, monkeypatch):
    built()
    pages.page("# Q\n", "q.md")
    fault, *_ = check.faults(site.load(pages.root), pages.root / "site")
    assert fault.startswith("docs/q.md was not published as")
    monkeypatch.chdir(pages.root)
    assert check.main(["nowhere"]) == 1
    assert "holds no HTML; build the site first" in capsys.readouterr().out


def test_command_says_how_many_pages_it_saw(built, pages, capsys, monkeypatch):
    built()
    monkeypatch.chdir(pages.root)
    assert check.main([]) == 0
    assert capsys.readouterr().out == "1 pages published as tested\n"
