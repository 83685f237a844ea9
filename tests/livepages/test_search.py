"""Code blocks are marked for the search index to leave them out."""

import pytest
from markdown import Markdown

EXTENSIONS = ["attr_list", "pymdownx.superfences", "pymdownx.highlight", "livepages.search"]


@pytest.mark.parametrize("fence", ["```python", '```python {.gpu title="A block"}'])
def test_code_block_stays_out_of_the_index(fence):
    html = Markdown(extensions=EXTENSIONS).convert(f"Text with `code`.\n\n{fence}\nx = 1\n```\n")
    assert html.count("<div data-search-exclude class=") == 1
    assert html.startswith("<p>Text with <code>code</code>.</p>")
