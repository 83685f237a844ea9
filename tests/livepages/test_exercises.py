"""The front matter of exercises: what is read, and what each fault is told."""

import subprocess
import sys

import pytest
import yaml

from livepages.exercises import GROUPS, ExerciseError, load, tags_of

FRONT_MATTER = {
    "title": "Clip: by norm",
    "group": "Precision",
    "order": 1,
    "difficulty": "easy",
    "tags": ["numpy", "low-precision"],
    "minutes": 15,
    "hints": ["Use `np.vdot`.", "Then the root."],
}


@pytest.fixture
def write(tmp_path):
    """Write an exercise with some fields changed; None leaves one out."""

    def write(slug="clip", **changed):
        folder = tmp_path / "docs/exercises" / slug
        (folder / "mistakes").mkdir(parents=True)
        fields = {k: v for k, v in (FRONT_MATTER | changed).items() if v is not None}
        page = f"---\n{yaml.safe_dump(fields)}---\n\n# T\n"
        (folder / "index.md").write_text(page)
        for name in ("starter.py", "solution.py", "checks.py", "mistakes/loop.py"):
            (folder / name).write_text("...\n")
        return folder

    return write


def complaint(docs):
    with pytest.raises(ExerciseError) as caught:
        load(docs)
    return str(caught.value)


def test_exercise_is_read_whole(write, tmp_path):
    folder = write()
    [exercise] = load(tmp_path / "docs")
    assert exercise.slug == "clip"
    assert exercise.folder == folder
    assert exercise.hints == ("Use `np.vdot`.", "Then the root.")
    lists = {"tags": exercise.tags, "hints": exercise.hints}
    plain = {name: getattr(exercise, name) for name in FRONT_MATTER.keys() - lists}
    assert plain | {k: list(v) for k, v in lists.items()} == FRONT_MATTER


def test_exercises_are_ordered_by_group_then_order(write, tmp_path):
    write("a", group=GROUPS[4])
    write("b", group=GROUPS[0], order=10)
    write("c", group=GROUPS[0], order=9)
    write("d", group=GROUPS[1])
    assert [exercise.slug for exercise in load(tmp_path / "docs")] == ["c", "b", "d", "a"]


def test_other_files_beside_the_exercises_are_none(write, tmp_path):
    folder = write()
    (folder.parent / "index.md").write_text("# Exercises\n")
    (folder.parent / "__pycache__").mkdir()
    (folder.parent / ".hidden").mkdir()
    assert len(load(tmp_path / "docs")) == 1
    assert load(tmp_path) == []


def test_tags_are_named_once_and_sorted(write, tmp_path):
    write("a", order=1)
    write("b", order=2, tags=["gradients", "numpy"])
    assert tags_of(load(tmp_path / "docs")) == ["gradients", "low-precision", "numpy"]


@pytest.mark.parametrize("field", FRONT_MATTER)
def test_missing_field_is_named(write, tmp_path, field):
    write(**{field: None})
    message = complaint(tmp_path / "docs")
    assert message.startswith(f"docs/exercises/clip/index.md: the field '{field}' is missing")
    assert f"add {field}: " in message


@pytest.mark.parametrize(
    ("field", "value", "needed"),
    [
        ("title", "", "a line of text"),
        ("title", 3, "a line of text"),
        ("title", "two\nlines", "a line of text"),
        ("group", "precision", "one of Optimizers & Schedules, Accumulation, Precision, Many"),
        ("order", 0, "a whole number from 1 on"),
        ("order", "1", "a whole number from 1 on"),
        ("order", True, "a whole number from 1 on"),
        ("difficulty", "Easy", "one of easy, medium, hard"),
        ("difficulty", ["easy"], "one of easy, medium, hard"),
        ("tags", "numpy", "a list of different lower-case words"),
        ("tags", [], "a list of different lower-case words"),
        ("tags", ["NumPy"], "a list of different lower-case words"),
        ("tags", ["numpy", "numpy"], "a list of different lower-case words"),
        ("minutes", 1.5, "a whole number from 1 on"),
        ("hints", [], "a list of lines of text, in quotes"),
        ("hints", [{"Use": "dot"}], "a list of lines of text, in quotes"),
    ],
)
def test_wrong_value_is_named_with_what_is_needed(write, tmp_path, field, value, needed):
    write(**{field: value})
    start = f"docs/exercises/clip/index.md: {field} is {value!r}; it must be {needed}"
    assert complaint(tmp_path / "docs").startswith(start)


def test_unknown_field_is_named(write, tmp_path):
    write(level="hard")
    message = complaint(tmp_path / "docs")
    assert message.startswith("docs/exercises/clip/index.md: 'level' is not a field; remove")


def test_order_taken_twice_names_both(write, tmp_path):
    write("a", order=2)
    write("b", order=2)
    message = complaint(tmp_path / "docs")
    assert message == (
        "docs/exercises/b/index.md: order is 2; it must be free; a has it in this group"
    )


@pytest.mark.parametrize("name", ["index.md", "starter.py", "solution.py", "checks.py"])
def test_missing_file_is_named(write, tmp_path, name):
    (write() / name).unlink()
    assert complaint(tmp_path / "docs").startswith(f"docs/exercises/clip: {name} is missing")


def test_exercise_without_mistakes_is_refused(write, tmp_path):
    (write() / "mistakes/loop.py").unlink()
    message = complaint(tmp_path / "docs")
    assert message.startswith("docs/exercises/clip: no wrong solution in mistakes/; add")


def test_folder_that_makes_no_address_is_refused(write, tmp_path):
    write("Clip_Norm")
    message = complaint(tmp_path / "docs")
    assert message.startswith("docs/exercises/Clip_Norm: 'Clip_Norm' becomes an address: rename")


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("# T\n", "begin it with front matter: title, group, order"),
        ("---\n---\n", "begin it with front matter"),
        ("---\n- title\n---\n", "begin it with front matter"),
        ("---\ntitle: Clip: by norm\n---\n", "its front matter is not YAML"),
    ],
)
def test_page_without_readable_front_matter_is_refused(write, tmp_path, page, fault):
    (write() / "index.md").write_text(page)
    assert complaint(tmp_path / "docs").startswith(f"docs/exercises/clip/index.md: {fault}")


def test_exercises_load_nothing_heavy():
    code = (
        "import sys, livepages.exercises\n"
        "heavy = {'torch', 'numpy', 'gradstep', 'pytest', 'mkdocs'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
