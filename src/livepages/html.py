"""What the published-site check needs of an HTML page."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlsplit

VOID = set("area base br col embed hr img input link meta source track wbr".split())  # noqa: SIM905
# attributes that make a browser load something as soon as the page is open
LOADED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
}
# links that only name a page; every other kind is loaded or connected to
PASSIVE = {"canonical", "prev", "next", "alternate", "edit", "author", "license", "help", "search"}
CSS_URL = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s;]+)""")


@dataclass
class Block:
    """A code block of a published page."""

    line: int
    classes: frozenset[str]
    text: str = ""

    @property
    def language(self) -> str:
        """The language it is highlighted as, empty if the page does not say."""
        names = [n.removeprefix("language-") for n in self.classes if n.startswith("language-")]
        return names[0] if names else ""


@dataclass
class Level:
    """An open element."""

    tag: str
    classes: frozenset[str]
    starts: bool = field(default=True)  # no text in it yet


class PublishedPage(HTMLParser):
    """Collects the code blocks, the text outside of code, and what a browser would load."""

    def __init__(self, html: str) -> None:
        """Read a page."""
        super().__init__()
        self.blocks: list[Block] = []
        self.prose: list[tuple[int, bool, str]] = []  # line, first in its element, text
        self.loads: list[tuple[int, str]] = []
        self.levels: list[Level] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what loads; open a block at a code element in a pre element."""
        values = {name: value or "" for name, value in attrs}
        self._note_loads(tag, values)
        level = Level(tag, frozenset(values.get("class", "").split()))
        if tag == "code" and self._is_in("pre") and not self._is_documented():
            around = [each.classes for each in self.levels if "highlight" in each.classes]
            self.blocks.append(Block(self.getpos()[0], (around or [level.classes])[-1]))
        if tag not in VOID:
            self.levels.append(level)

    def handle_endtag(self, tag: str) -> None:
        """Close the element, and those inside that were left open."""
        if self._is_in(tag):
            while self.levels.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        """Add to the open block, or to the prose."""
        if self._is_in("style"):
            self.loads += [(self.getpos()[0], url) for url in CSS_URL.findall(data)]
        elif self._is_in("script") or self._is_documented():
            return
        elif self._is_in("code"):
            if self._is_in("pre"):
                self.blocks[-1].text += data
        elif self.levels and data.strip():
            self.prose.append((self.getpos()[0], self.levels[-1].starts, data))
            self.levels[-1].starts = False

    def _is_in(self, tag: str) -> bool:
        return any(level.tag == tag for level in self.levels)

    def _is_documented(self) -> bool:
        # mkdocstrings: signatures and docstrings, whose examples doctest runs
        return any("doc" in level.classes for level in self.levels)

    def _note_loads(self, tag: str, values: dict[str, str]) -> None:
        names = LOADED.get(tag, ())
        if tag == "link" and not set(values.get("rel", "").split()) & PASSIVE:
            names = ("href",)
        for name in names:
            for part in values.get(name, "").split(","):
                self.loads += [(self.getpos()[0], url) for url in part.split()[:1]]
        style = CSS_URL.findall(values.get("style", ""))
        self.loads += [(self.getpos()[0], url) for url in style]


def is_foreign(url: str, own: str) -> bool:
    """Whether loading this address leaves the site."""
    host = urlsplit(url).netloc
    return bool(host) and host != urlsplit(own).netloc
