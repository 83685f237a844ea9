"""Every page can be edited from where it is read, and shows what it explains."""

import re

import pytest
from built_site import ROOT

from livepages import pages
from livepages import site as sites

EDIT = "https://github.com/gradstep/gradstep/edit/main/docs/"
HERE = sites.load(ROOT)
CONTRIBUTE = [path for path in HERE.pages() if path.parent.name == "contribute"]


def test_every_page_has_its_edit_button(site):
    checked = 0
    for path in HERE.pages():
        name = path.relative_to(HERE.docs)
        folder = name.parent if name.stem == "index" else name.with_suffix("")
        html = (site / folder / "index.html").read_text("utf-8")
        (button,) = re.findall(r'<a href="([^"]+)"[^>]*title="Edit this page"', html)
        assert button == EDIT + name.as_posix()
        checked += 1
    assert checked >= 20


def test_issue_forms_that_pages_link_to_exist():
    text = "".join(path.read_text("utf-8") for path in CONTRIBUTE)
    forms = re.findall(r"issues/new\?template=([\w.-]+)", text)
    assert len(forms) == 3
    assert all((ROOT / ".github/ISSUE_TEMPLATE" / form).is_file() for form in forms)


@pytest.mark.parametrize("path", CONTRIBUTE, ids=lambda path: path.stem)
def test_example_is_shown_as_it_is_written(path):
    """What a page shows as Markdown stands below it once more, where it renders and runs."""
    page = pages.read(HERE, path)
    text = page.text.replace(";--8<--", "--8<--")  # shown with the semicolon it would not be found
    for fence in page.fences:
        if fence.language == "markdown":
            assert text.count(f"\n{fence.text}\n") == 2, fence.text


def test_examples_are_there():
    fences = [fence for path in CONTRIBUTE for fence in pages.read(HERE, path).fences]
    assert sum(fence.language == "markdown" for fence in fences) >= 6
