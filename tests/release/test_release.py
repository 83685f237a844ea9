"""The package is what its tag says, holds what it should, and runs the README."""

import subprocess
import sys
from datetime import date

import pytest

from tests.release.__main__ import fault_of_tag
from tests.release.package import HEADING, ROOT, build, files_of, run, run_readme, version_of

CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the source archive; without isolation, as that needs the network."""
    return build(tmp_path_factory.mktemp("dist"), "--no-isolation")


def test_wheel_runs_the_readme_from_where_it_is_installed(built, tmp_path):
    target = tmp_path / "installed"
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "--no-deps", "--no-index", "--target", target, built[0])
    assert run_readme(sys.executable, tmp_path, str(target)).startswith(str(target))


def test_readme_that_shows_another_output_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.release.package.ROOT", tmp_path)
    (tmp_path / "mkdocs.yml").write_text("markdown_extensions: [pymdownx.superfences]\n")
    text = "```python\nimport gradstep\nprint(1)\n```\n\n```text {.output}\n2\n```\n"
    (tmp_path / "README.md").write_text(text)
    with pytest.raises(AssertionError, match=r"the README shows:\n2\n\nit prints:\n1\n"):
        run_readme(sys.executable, tmp_path)


def test_wheel_holds_gradstep_alone(built):
    folders = {name.partition("/")[0] for name in files_of(built[0])}
    assert folders == {"gradstep", f"gradstep-{version_of(built[0])}.dist-info"}
    sources = {f"gradstep/{file.name}" for file in (ROOT / "src/gradstep").glob("*.py")}
    assert sources <= files_of(built[0])


def test_source_archive_holds_what_the_wheel_is_built_from(built):
    other = {name for name in files_of(built[1]) if not name.startswith("src/gradstep/")}
    assert other == {
        ".gitignore",
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
    }


@pytest.mark.parametrize("tag", ["v0.3.0", "v1.2.3"])
def test_version_comes_from_the_tag(tag, tmp_path):
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "src/gradstep").mkdir(parents=True)
    (tmp_path / "src/gradstep/__init__.py").touch()
    commit = "-c user.name=a -c user.email=b commit -qm one"
    for command in ("init -q", "add .", commit, f"tag {tag}"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    command = (sys.executable, "-m", "hatchling", "version")
    assert run(*command, cwd=tmp_path).strip() == tag.removeprefix("v")


def test_copy_without_git_has_a_version(tmp_path):
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    assert run(sys.executable, "-m", "hatchling", "version", cwd=tmp_path).strip() == "0.0.0"


def test_changelog_is_dated_newest_first_and_says_something():
    assert CHANGELOG.startswith("# Changelog\n")
    _, *sections = CHANGELOG.split("\n## ")
    headings = [HEADING.fullmatch("## " + section.partition("\n")[0]) for section in sections]
    assert sections
    assert all(headings), "write ## 2026-01-31, or ## 1.2.3 - 2026-01-31 for a release"
    dates = [date.fromisoformat(heading["date"]) for heading in headings if heading]
    assert dates == sorted(dates, reverse=True)
    found = (heading["version"] for heading in headings if heading and heading["version"])
    versions = [[int(part) for part in version.split(".")] for version in found]
    assert versions == sorted(versions, reverse=True)
    assert all("\n- " in section for section in sections)


@pytest.mark.parametrize(
    ("tag", "version", "heading", "fault"),
    [
        ("v1.2.3", "1.2.3", "## 1.2.3 - 2026-01-31", None),
        ("1.2.3", "1.2.3", "## 1.2.3 - 2026-01-31", "the tag is '1.2.3', the package"),
        ("v1.2.3", "1.2.4.dev0", "## 1.2.3 - 2026-01-31", "tag a clean commit"),
        ("v1.2.3", "1.2.3", "## 2026-01-31", "write ## 1.2.3 - year-month-day"),
        ("v1.2.3", "1.2.3", "## 1.2.2 - 2026-01-31", "must begin with this release"),
    ],
)
def test_tag_that_is_no_release_is_refused(tag, version, heading, fault):
    found = fault_of_tag(tag, version, f"# Changelog\n\n{heading}\n\n- New.\n")
    assert (found is None) if fault is None else (fault in found)
