"""Readers see every tag that livepages knows."""

import pytest
from built_site import ROOT

from livepages.tags import TAGS


@pytest.mark.parametrize("tag", TAGS, ids=lambda tag: tag.name)
def test_every_tag_has_a_style(tag):
    css = (ROOT / "docs/assets/css/site.css").read_text()
    assert f".block-badge--{tag.kind} {{" in css
