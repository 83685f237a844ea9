"""Every exercise: its solution passes; its starter and its typical mistakes fail, by name."""

from pathlib import Path
from typing import Any

import grader
import pytest

EXERCISES = Path(__file__).parents[2] / "docs" / "exercises"
FOLDERS = sorted(path for path in EXERCISES.glob("[!._]*") if path.is_dir())
MISTAKES = sorted(path for folder in FOLDERS for path in folder.glob("mistakes/*.py"))
FILES = ("index.md", "starter.py", "solution.py", "checks.py")
MARK = "# fails with: "

each_exercise = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def graded(folder: Path, program: Path) -> dict[str, Any]:
    checks = (folder / "checks.py").read_text("utf-8")
    return grader.grade(program.read_text("utf-8"), checks)


def failures(result: dict[str, Any]) -> list[str]:
    """What the learner is told about each test that did not pass."""
    assert result["error"] is None
    return [test["message"] for test in result["tests"] if test["status"] != "passed"]


def test_exercises_are_found() -> None:
    assert FOLDERS
    assert MISTAKES


@each_exercise
def test_exercise_has_all_its_files(folder: Path) -> None:
    missing = [name for name in FILES if not (folder / name).is_file()]
    assert not missing
    assert len(list(folder.glob("mistakes/*.py"))) >= 4


@each_exercise
def test_exercise_solution_passes(folder: Path) -> None:
    result = graded(folder, folder / "solution.py")
    assert failures(result) == []
    assert result["status"] == "passed"
    assert len(result["tests"]) >= 3
    assert not any(test["output"] for test in result["tests"])


@each_exercise
def test_exercise_starter_fails_with_a_message(folder: Path) -> None:
    found = failures(graded(folder, folder / "starter.py"))
    assert found
    assert all(found)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda p: f"{p.parts[-3]}/{p.stem}")
def test_exercise_mistake_fails_with_the_message_that_names_it(mistake: Path) -> None:
    first = mistake.read_text("utf-8").splitlines()[0]
    assert first.startswith(MARK)
    named = first.removeprefix(MARK).strip()
    assert len(named) >= 10
    found = failures(graded(mistake.parents[1], mistake))
    assert any(named in message for message in found), found
