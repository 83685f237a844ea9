"""A Markdown extension: readers see the tag of a block as a badge.

In `mkdocs.yml`, after `attr_list` and `pymdownx.superfences`:

    markdown_extensions:
      - livepages.badges

A tagged block renders as `<div class="gpu highlight">`; the badge becomes its first child:
`<span class="block-badge block-badge--gpu" title="Needs a CUDA device: ...">GPU</span>`.
"""

import re
from html import escape
from typing import Any

from markdown import Markdown  # type: ignore[import-untyped]
from markdown.extensions import Extension  # type: ignore[import-untyped]
from markdown.postprocessors import Postprocessor  # type: ignore[import-untyped]

from livepages import tags

HIGHLIGHT = re.compile(r'<div class="(?P<classes>[^"]*\bhighlight\b[^"]*)"[^>]*>')


class _Badges(Postprocessor):  # type: ignore[misc]
    def run(self, text: str) -> str:
        return HIGHLIGHT.sub(_with_badges, text)


def _with_badges(match: re.Match[str]) -> str:
    uses = [use for name in match["classes"].split() if (use := tags.find(name))]
    return match[0] + "".join(map(badge, uses))


def badge(use: tags.Use) -> str:
    """Return the badge of one tag as HTML."""
    return (
        f'<span class="block-badge block-badge--{use.tag.kind}" '
        f'title="{escape(use.meaning)}">{escape(use.badge)}</span>'
    )


class BadgeExtension(Extension):  # type: ignore[misc]
    """Adds a badge to every tagged block."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 (Markdown's name)
        """Register behind raw_html (30), which puts the stashed blocks back."""
        md.postprocessors.register(_Badges(md), "livepages_badges", 25)


def makeExtension(**options: Any) -> BadgeExtension:  # noqa: N802 (Markdown's name)
    """Return the extension, as Markdown asks for it."""
    return BadgeExtension(**options)
