"""Zensical, which follows Material for MkDocs, builds the same site from the same settings."""

import pytest
from built_site import build, built_pages, code_blocks, formulas, heading_ids


@pytest.fixture(scope="module")
def zensical_pages(sources):
    """The pages that Zensical builds, below the folder that it reads."""
    result = build("zensical", cwd=sources)
    assert result.returncode == 0, result.stdout
    return built_pages(sources / "site")


@pytest.fixture(scope="module")
def mkdocs_pages(site):
    return built_pages(site)


def test_zensical_builds_the_same_pages(mkdocs_pages, zensical_pages):
    assert zensical_pages.keys() == mkdocs_pages.keys()


@pytest.mark.parametrize("part", [code_blocks, formulas, heading_ids])
def test_zensical_agrees_with_mkdocs(mkdocs_pages, zensical_pages, part):
    expected = {path: part(html) for path, html in mkdocs_pages.items()}
    assert any(expected.values())
    assert {path: part(html) for path, html in zensical_pages.items()} == expected
