"""Start a page or an exercise from a template that passes, as `make new-page` does.

    python -m livepages.new page lesson/my-page
    python -m livepages.new exercise my-exercise

The templates, in snippets/new, are themselves a page and an exercise.
"""

import re
import sys
from pathlib import Path

from livepages import counts, exercises
from livepages import site as sites
from livepages.site import Site

SLUG = exercises.SLUG.pattern
TEMPLATES = Path("snippets/new")
NAV = re.compile(rf"(?P<lead> *- )(?:[^:]*: )?(?P<folder>{SLUG})/[\w/-]+\.md\n")


def page(site: Site, name: str) -> Path:
    """Write a page, and enter it into the navigation and the table of counts.

    Raises:
        ValueError: if there cannot be such a page, or there is one.
    """
    if not re.fullmatch(rf"{SLUG}/{SLUG}", name):
        raise ValueError(
            f"NAME is {name!r}; a page needs a folder and a name, in lower-case letters, digits "
            "and hyphens: make new-page NAME=lesson/my-page"
        )
    folder, _, slug = name.partition("/")
    if folder == "exercises":
        raise ValueError(f"NAME is {name!r}; write make new-exercise NAME={slug}")
    new = _free(site.docs / f"{name}.md", site)
    navigation = _navigation(site.root / "mkdocs.yml", folder, name)
    new.write_text(_named(site.root / TEMPLATES / "page.md", "page", slug), "utf-8")
    (site.root / "mkdocs.yml").write_text(navigation, "utf-8")
    counts.add(site, new)
    return new


def exercise(site: Site, name: str) -> Path:
    """Write the files of an exercise, the last of its group, and enter its page into the table.

    Raises:
        ValueError: if there cannot be such an exercise, or there is one.
    """
    if not re.fullmatch(SLUG, name):
        raise ValueError(
            f"NAME is {name!r}; an exercise is named in lower-case letters, digits and hyphens: "
            "make new-exercise NAME=my-exercise"
        )
    new = _free(site.docs / "exercises" / name, site)
    taken = [(one.group, one.order) for one in exercises.load(site.docs)]
    template = site.root / TEMPLATES / "exercise"
    for file in sorted(path for path in template.rglob("*.*") if path.suffix in {".py", ".md"}):
        text = _named(file, "exercise", name)
        if file.name == "index.md":
            group = re.search("^group: (.*)$", text, re.MULTILINE)
            order = 1 + max((order for of, order in taken if group and of == group[1]), default=0)
            text = text.replace("\norder: 1\n", f"\norder: {order}\n")
        target = new / file.relative_to(template)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    counts.add(site, new / "index.md")
    return new


def _free(path: Path, site: Site) -> Path:
    if path.exists():
        raise ValueError(f"{site.relative(path)} exists; choose another NAME, or edit it")
    return path


def _named(template: Path, kind: str, slug: str) -> str:
    """The template, whose own name is my-page or my-exercise, under its new name."""
    title = slug.replace("-", " ").capitalize()
    text = template.read_text("utf-8")
    return text.replace(f"my-{kind}", slug).replace(f"My {kind}", title)


def _navigation(file: Path, folder: str, name: str) -> str:
    """The settings with the page behind the last one of its folder."""
    lines = file.read_text("utf-8").splitlines(keepends=True)
    found = [(n, match) for n, line in enumerate(lines) if (match := NAV.fullmatch(line))]
    behind = [(n, match["lead"]) for n, match in found if match["folder"] == folder]
    if not behind:
        folders = ", ".join(dict.fromkeys(match["folder"] for _, match in found))
        raise ValueError(
            f"NAME is {name!r}, but the navigation in {file.name} has no page in {folder}; it has "
            f"{folders}. Enter a first page of {folder} by hand"
        )
    number, lead = behind[-1]
    return "".join([*lines[: number + 1], f"{lead}{name}.md\n", *lines[number + 1 :]])


def main(arguments: list[str]) -> int:
    """Start what is asked for and say what to do next; return 1 if it cannot be started."""
    kind, name = arguments
    site = sites.load(Path.cwd())
    try:
        new = site.relative({"page": page, "exercise": exercise}[kind](site, name))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    test = f".venv/bin/pytest {new}"
    if kind == "exercise":
        test += f" && .venv/bin/pytest tests/exercises -k {name}"
    print(f"{new} is there, and passes. Change it a piece at a time:\n    {test}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
