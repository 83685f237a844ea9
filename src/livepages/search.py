"""A Markdown extension: code blocks stay out of the search index.

In `mkdocs.yml`:

    markdown_extensions:
      - livepages.search

Every page fetches the whole index, and half of it would be code. Names in headings and in the
text are found as before.
"""

import re
from typing import Any

from markdown import Markdown  # type: ignore[import-untyped]
from markdown.extensions import Extension  # type: ignore[import-untyped]
from markdown.postprocessors import Postprocessor  # type: ignore[import-untyped]

BLOCK = re.compile(r'<div (?=class="[^"]*\bhighlight\b)')


class _CodeOut(Postprocessor):  # type: ignore[misc]
    def run(self, text: str) -> str:
        return BLOCK.sub("<div data-search-exclude ", text)


class SearchExtension(Extension):  # type: ignore[misc]
    """Marks code blocks for the search plugin, which leaves such elements out."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 (Markdown's name)
        """Register behind raw_html (30), which puts the blocks back, and behind their badges."""
        md.postprocessors.register(_CodeOut(md), "livepages_search", 24)


def makeExtension(**options: Any) -> SearchExtension:  # noqa: N802 (Markdown's name)
    """Return the extension, as Markdown asks for it."""
    return SearchExtension(**options)
