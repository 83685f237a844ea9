"""The layout of a page's programs: spaces and quotes are ruff's, line breaks are the writer's.

The formatter would break lines and add blank ones until a block no longer fits a screen. Its
spaces are checked without it, by the rules that say the same.
"""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

from ruff import find_ruff_bin  # type: ignore[import-untyped]

from livepages.includes import Fault, Place
from livepages.pages import Page
from livepages.site import Site

RULES = "E1,E2,E501,E70,E71,W,Q"  # indentation, spaces, long lines, statements, ends, quotes


def faults(site: Site, page: Page) -> Iterator[Fault]:
    """Yield every line of a program that is not laid out as ruff would; includes are not ours."""
    if not page.programs:
        return
    lines = _programs_alone(page)
    options = ["--no-cache", "--preview", "--quiet", "--ignore-noqa", "--output-format=json"]
    command = [find_ruff_bin(), "check", *options, f"--select={RULES}", "--stdin-filename=page.py"]
    text = "\n".join(lines).rstrip() + "\n"
    result = subprocess.run(
        [*command, "-"], cwd=site.root, input=text, capture_output=True, encoding="utf-8"
    )
    if result.returncode not in {0, 1}:
        raise RuntimeError(f"ruff could not check {page.path}: {result.stderr}")
    for found in json.loads(result.stdout):
        number = found["location"]["row"]
        if found["code"]:  # a syntax error, which has none, shows when it runs
            message = f"{found['message']} (ruff {found['code']}){_cure(found, lines[number - 1])}"
            yield Fault((Place(page.path, number),), message)


def _programs_alone(page: Page) -> list[str]:
    """The page with nothing but its programs, at their lines; `...` stands for an include."""
    lines = [""] * (page.text.count("\n") + 1)
    for program in page.programs:
        fence = program.fence
        for line, places in zip(fence.text.split("\n"), fence.places, strict=True):
            included = len(places) > 1
            if not (included and lines[places[0].line - 1]):
                indent = line[: len(line) - len(line.lstrip())]
                lines[places[0].line - 1] = f"{indent}..." if included else line
    return lines


def _cure(found: dict[str, Any], line: str) -> str:
    """What to write instead, if ruff knows it and it is one line."""
    edits = (found["fix"] or {"edits": []})["edits"]
    new = line
    for edit in sorted(edits, key=lambda edit: edit["location"]["column"], reverse=True):
        start, end = edit["location"], edit["end_location"]
        if start["row"] != end["row"] or start["row"] != found["location"]["row"]:
            return ""
        new = new[: start["column"] - 1] + edit["content"] + new[end["column"] - 1 :]
    return f"; write: {new.strip()}" if edits else ""
