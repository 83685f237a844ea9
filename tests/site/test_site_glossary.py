"""What the glossary says when a reader points at a word, it says on its page too."""

import re

from built_site import ROOT

ABBREVIATION = re.compile(r"^\*\[(.+?)\]: (.+)$", re.MULTILINE)


def test_every_hover_definition_is_on_the_glossary_page():
    hover = ABBREVIATION.findall((ROOT / "snippets/glossary.md").read_text())
    page = (ROOT / "docs/reference/glossary.md").read_text().replace("`", "")
    definitions = " ".join(page.split())
    assert len(hover) > 5
    for term, definition in hover:
        assert f" {term.removesuffix('es').removesuffix('s')}" in definitions
        assert f": {definition}" in definitions, term
