"""The exercises of a site: each folder below docs/exercises, as its front matter describes it.

    docs/exercises/<slug>/index.md       front matter and statement
    docs/exercises/<slug>/starter.py     what the editor begins with
    docs/exercises/<slug>/solution.py
    docs/exercises/<slug>/checks.py      what is graded
    docs/exercises/<slug>/mistakes/*.py  wrong solutions, which must fail

Nothing heavy is loaded: the roadmap is built without torch.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

GROUPS = ("Optimizers & Schedules", "Accumulation", "Precision", "Many ranks", "Memory")
DIFFICULTIES = ("easy", "medium", "hard")
FILES = ("starter.py", "solution.py", "checks.py")
# what each field holds, as messages say it
FIELDS = {
    "title": "a line of text",
    "group": f"one of {', '.join(GROUPS)}",
    "order": "a whole number from 1 on",
    "difficulty": f"one of {', '.join(DIFFICULTIES)}",
    "tags": "a list of different lower-case words, joined by hyphens",
    "minutes": "a whole number from 1 on",
    "hints": "a list of lines of text, in quotes",
}
SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?P<yaml>.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)


class ExerciseError(ValueError):
    """A fault of an exercise: where it is, what is there, what is needed."""


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Args:
        slug: the name of its folder, in its address and in the reader's storage.
        title: plain text.
        group: one of GROUPS.
        order: within the group.
        difficulty: one of DIFFICULTIES.
        tags: slugs, in the order of the page.
        minutes: that it takes, about.
        hints: plain text, from the gentlest on.
        folder: of its files.
    """

    slug: str
    title: str
    group: str
    order: int
    difficulty: str
    tags: tuple[str, ...]
    minutes: int
    hints: tuple[str, ...]
    folder: Path


def load(docs: Path) -> list[Exercise]:
    """Read every exercise below `docs`, in the order of the roadmap.

    Raises:
        ExerciseError: if a file or field is missing, unknown or wrong.
    """
    folders = sorted(path for path in (docs / "exercises").glob("[!._]*") if path.is_dir())
    found = [read(folder) for folder in folders]
    taken: dict[tuple[str, int], Exercise] = {}
    for one in found:
        other = taken.setdefault((one.group, one.order), one)
        if other is not one:
            raise _wrong(one.folder, "order", one.order, f"free; {other.slug} has it in this group")
    return sorted(found, key=lambda one: (GROUPS.index(one.group), one.order))


def read(folder: Path) -> Exercise:
    """Read one exercise from its folder.

    Raises:
        ExerciseError: if a file or field is missing, unknown or wrong.
    """
    if not SLUG.fullmatch(folder.name):
        raise ExerciseError(
            f"{_name(folder)}: {folder.name!r} becomes an address: rename the folder "
            "in lower-case letters, digits and single hyphens"
        )
    for name in ("index.md", *FILES):
        if not (folder / name).is_file():
            raise ExerciseError(f"{_name(folder)}: {name} is missing; add it to the folder")
    if not any(folder.glob("mistakes/*.py")):
        raise ExerciseError(
            f"{_name(folder)}: no wrong solution in mistakes/; add typical ones as .py files"
        )
    fields = _fields(folder)
    for name, value in fields.items():
        _check(folder, name, value)
    return Exercise(slug=folder.name, folder=folder, **{k: _frozen(v) for k, v in fields.items()})


def _fields(folder: Path) -> dict[str, Any]:
    """The front matter, which has exactly the fields of FIELDS."""
    page = f"{_name(folder)}/index.md"
    found = FRONT_MATTER.match((folder / "index.md").read_text("utf-8-sig"))
    try:
        fields = yaml.safe_load(found["yaml"]) if found else None
    except yaml.YAMLError as error:
        raise ExerciseError(f"{page}: its front matter is not YAML: {error}") from error
    if not isinstance(fields, dict):
        raise ExerciseError(f"{page}: begin it with front matter: {', '.join(FIELDS)}")
    for name in FIELDS:
        if name not in fields:
            raise ExerciseError(
                f"{page}: the field {name!r} is missing; add {name}: {FIELDS[name]}"
            )
    for name in fields:
        if name not in FIELDS:
            raise ExerciseError(
                f"{page}: {name!r} is not a field; remove it, the fields are {', '.join(FIELDS)}"
            )
    return fields


def _check(folder: Path, name: str, value: object) -> None:
    right = {
        "title": _is_text(value),
        "group": value in GROUPS,
        "order": _is_count(value),
        "difficulty": value in DIFFICULTIES,
        "tags": _is_list(value, lambda tag: bool(SLUG.fullmatch(tag))) and _differ(value),
        "minutes": _is_count(value),
        "hints": _is_list(value, lambda hint: True),
    }
    if not right[name]:
        raise _wrong(folder, name, value, FIELDS[name])


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.strip() != "" and "\n" not in value.strip()


def _is_count(value: object) -> bool:
    return type(value) is int and value > 0


def _is_list(value: object, suits: Any) -> bool:
    is_list = isinstance(value, list) and len(value) > 0
    return is_list and all(_is_text(item) and suits(item) for item in value)  # type: ignore[attr-defined]


def _differ(values: Any) -> bool:
    return len(set(values)) == len(values)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _wrong(folder: Path, field: str, value: object, needed: str) -> ExerciseError:
    return ExerciseError(f"{_name(folder)}/index.md: {field} is {value!r}; it must be {needed}")


def _name(folder: Path) -> str:
    """The folder as messages show it: from docs on."""
    return "/".join(folder.parts[-3:])


def tags_of(exercises: Iterable[Exercise]) -> list[str]:
    """Every tag that an exercise has, sorted."""
    return sorted({tag for exercise in exercises for tag in exercise.tags})
