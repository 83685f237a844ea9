"""The words of a page, looked up among codespell's misspellings, as `make lint` does."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import codespell_lib

from livepages.includes import Fault, Place
from livepages.pages import Page
from livepages.site import Site

WORD = re.compile(r"[\w'’-]+")
LISTS = ("dictionary.txt", "dictionary_rare.txt")  # what codespell takes if it is not told


def faults(site: Site, page: Page) -> Iterator[Fault]:
    """Yield every misspelt word of a page, its code included."""
    known = _misspelt(site.root)
    for number, line in enumerate(page.text.split("\n"), 1):
        for word in WORD.findall(line):
            if right := known.get(word.lower().replace("’", "'")):
                message = (
                    f"{word} is misspelt: {right}; if not, add it to ignore-words-list in "
                    "pyproject.toml"
                )
                yield Fault((Place(page.path, number),), message)


@cache
def _misspelt(root: Path) -> dict[str, str]:
    """The words that are wrong, with what is right."""
    settings = root / "pyproject.toml"
    tools = tomllib.loads(settings.read_text("utf-8")).get("tool", {}) if settings.exists() else {}
    ignored = tools.get("codespell", {}).get("ignore-words-list", "").split(",")
    data = Path(codespell_lib.__file__).parent / "data"
    lines = (line for name in LISTS for line in (data / name).read_text("utf-8").splitlines())
    words = dict(line.lower().split("->") for line in lines)
    return {word: right.rstrip(", ") for word, right in words.items() if word not in ignored}
