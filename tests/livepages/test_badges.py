"""Readers see the tag that tests act on, from the same table."""

import subprocess
import sys

from markdown import Markdown

from livepages import tags

EXTENSIONS = ["attr_list", "admonition", "pymdownx.superfences", "livepages.badges"]


def render(text):
    return Markdown(extensions=EXTENSIONS).convert(text)


def test_tagged_block_has_a_badge():
    html = render('```python {.gpu title="T"}\na = 1\n```\n')
    assert (
        '<div class="gpu highlight"><span class="block-badge block-badge--gpu" title="Needs' in html
    )
    assert ">GPU</span>" in html


def test_badge_names_the_number_of_processes():
    html = render("!!! note\n\n    ```python {.ranks-4}\n    a = 1\n    ```\n")
    assert 'block-badge--ranks" title="Complete in itself: 4 processes run it' in html
    assert ">4 processes</span>" in html


def test_every_tag_has_a_badge():
    for tag in tags.TAGS:
        name = tag.name.replace("N", "2")
        html = render(f"```{tag.language} {{.{name}}}\na\n```\n")
        assert f"block-badge--{tag.kind}" in html
        assert html.count("block-badge ") == 1


def test_untagged_block_and_text_have_none():
    assert "block-badge" not in render('```python\na\n```\n\n`<div class="gpu highlight">`\n')


def test_shown_html_gets_no_badge():
    assert "block-badge" not in render('```html\n<div class="gpu highlight">\n```\n')


def test_badges_load_nothing_heavy():
    code = (
        "import sys, livepages.badges\n"
        "heavy = {'torch', 'pytest', 'sybil', 'numpy', 'gradstep', 'mkdocs'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_harness_loads_neither_torch_nor_gradstep():
    code = (
        "import sys, livepages.plugin, livepages.items, livepages.check\n"
        "heavy = {'torch', 'numpy', 'gradstep'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
