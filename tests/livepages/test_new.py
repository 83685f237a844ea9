"""A new page or exercise starts from a template that passes every test and the strict build."""

import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from livepages import counts, exercises, new, site

from .conftest import ROOT


def run(folder, *command):
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(folder / "src")}
    result = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    return result.returncode, result.stdout + result.stderr


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A copy of this repository with a new page and a new exercise in it."""
    folder = tmp_path_factory.mktemp("whole")
    for name in ("docs", "snippets", "src"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copytree(ROOT / "tests/exercises", folder / "tests/exercises")
    for name in ("mkdocs.yml", "pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / name, folder)
    assert run(folder, "livepages.new", "page", "lesson/my-question")[0] == 0
    assert run(folder, "livepages.new", "exercise", "my-question")[0] == 0
    return folder


def test_new_pages_pass(whole):
    pages = ["docs/lesson/my-question.md", "docs/exercises/my-question/index.md"]
    code, text = run(whole, "pytest", *pages, "docs/.blocks.toml", "-q", "-p", "no:cacheprovider")
    assert code == 0, text
    assert "4 blocks ran" in text


def test_new_exercise_passes(whole):
    code, text = run(whole, "pytest", "tests/exercises", "-q", "-k", "my-question")
    assert code == 0, text
    assert int(re.search(r"(\d+) passed", text)[1]) >= 3 + 4  # its files, and four mistakes


def test_new_pages_build_strictly(whole):
    code, text = run(whole, "mkdocs", "build", "--strict", "--site-dir", str(whole / "built"))
    assert code == 0, text
    assert (whole / "built/lesson/my-question/index.html").is_file()
    assert "my-question" in (whole / "built/exercises/index.html").read_text()


def test_new_texts_carry_their_own_name(whole):
    files = [
        whole / "docs/lesson/my-question.md",
        *(whole / "docs/exercises/my-question").rglob("*.*"),
    ]
    texts = [file.read_text() for file in files]
    assert "# My question\n" in texts[0]
    assert not any(re.search("my-(page|exercise)|My (page|exercise)", text) for text in texts)


@pytest.fixture
def small(tmp_path):
    """A site of two pages, with the templates."""
    shutil.copytree(ROOT / "snippets/new", tmp_path / "snippets/new")
    (tmp_path / "docs/lesson").mkdir(parents=True)
    (tmp_path / "docs/index.md").write_text("# One\n")
    (tmp_path / "docs/lesson/two.md").write_text("# Two\n")
    navigation = "nav:\n  - Start: index.md\n  - Lesson:\n      - Two: lesson/two.md\n"
    extensions = "markdown_extensions: [pymdownx.superfences]\n"
    (tmp_path / "mkdocs.yml").write_text(f"site_name: small\n{navigation}{extensions}")
    site.load.cache_clear()
    yield site.load(tmp_path)
    site.load.cache_clear()


def test_page_is_entered_behind_its_neighbours(small):
    new.page(small, "lesson/three")
    settings = yaml.safe_load((small.root / "mkdocs.yml").read_text())
    assert settings["nav"][1] == {"Lesson": [{"Two": "lesson/two.md"}, "lesson/three.md"]}
    assert counts.load(small) == {"lesson/three.md": {"output": 2, "python": 2, "raises": 1}}


def test_exercise_is_the_last_of_its_group(small):
    for name in ("one", "two"):
        new.exercise(small, name)
    assert [(one.slug, one.order) for one in exercises.load(small.docs)] == [("one", 1), ("two", 2)]


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("page", "", "NAME is ''; a page needs a folder and a name"),
        ("page", "three", "make new-page NAME=lesson/my-page"),
        ("page", "lesson/Three", "in lower-case letters, digits and hyphens"),
        ("page", "../three/four", "a page needs a folder and a name"),
        ("page", "lesson/two", "docs/lesson/two.md exists; choose another NAME, or edit it"),
        ("page", "other/three", "has no page in other; it has lesson. Enter a first page"),
        ("page", "exercises/three", "write make new-exercise NAME=three"),
        ("exercise", "", "NAME is ''; an exercise is named in lower-case letters"),
        ("exercise", "a/b", "make new-exercise NAME=my-exercise"),
        ("exercise", "taken", "docs/exercises/taken exists; choose another NAME, or edit it"),
    ],
)
def test_name_that_cannot_be_is_refused_and_nothing_written(
    small, monkeypatch, capsys, kind, name, message
):
    new.exercise(small, "taken")
    monkeypatch.chdir(small.root)
    before = {path: path.stat().st_mtime_ns for path in small.root.rglob("*.*")}
    assert new.main([kind, name]) == 1
    assert message in capsys.readouterr().err
    assert before == {path: path.stat().st_mtime_ns for path in small.root.rglob("*.*")}


def test_make_hands_over_the_name():
    command = ["make", "--dry-run", "--always-make", "new-page", "new-exercise", "NAME=a/b"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    for kind in ("page", "exercise"):
        assert f'python -m livepages.new {kind} "a/b"' in result.stdout
