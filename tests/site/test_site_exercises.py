"""The roadmap of the real site: built from the folders of the exercises, and from nothing else."""

import shutil

import pytest
from built_site import ROOT, build

FRONT_MATTER = """\
title: The newest
group: Memory
order: 99
difficulty: hard
tags: [newest]
minutes: 15
hints: ["One."]
"""


@pytest.fixture
def new_site(tmp_path):
    """A copy of the sources with one more exercise: (sources, its page)."""
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    for name in ("docs", "snippets", "src"):
        shutil.copytree(ROOT / name, tmp_path / name)
    folder = tmp_path / "docs/exercises/the-newest"
    (folder / "mistakes").mkdir(parents=True)
    for name in ("starter.py", "solution.py", "checks.py", "mistakes/loop.py"):
        (folder / name).write_text("a = 1\n")
    return tmp_path, folder / "index.md"


def write(page, front_matter):
    page.write_text(
        f"---\n{front_matter}---\n\n# The newest\n\n<!-- exercise the-newest -->\n\nT.\n"
    )


def test_new_folder_appears_by_itself(new_site):
    sources, page = new_site
    write(page, FRONT_MATTER)
    result = build("mkdocs", cwd=sources)
    assert result.returncode == 0, result.stdout
    built = sources / "site/exercises"
    assert '<a href="the-newest/">The newest</a>' in (built / "index.html").read_text()
    published = {path.name for path in (built / "the-newest").iterdir()}
    assert published == {"index.html", "starter.py", "solution.py", "checks.py"}


@pytest.mark.parametrize("tool", ["mkdocs", "zensical"])
def test_missing_field_fails_the_build_with_its_name(new_site, tool):
    sources, page = new_site
    write(page, FRONT_MATTER.replace("minutes: 15\n", ""))
    result = build(tool, cwd=sources)
    assert result.returncode != 0
    assert (
        "docs/exercises/the-newest/index.md: the field 'minutes' is missing; add minutes: a whole "
        "number from 1 on"
    ) in " ".join(result.stdout.split())
