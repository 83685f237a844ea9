"""What a tag behind a fence's language means: the one table, for tests and for readers."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Tag:
    """One tag: how it is written, what readers see, what it means.

    Args:
        name: how the tag is spelled in messages and in the table of counts.
        pattern: matches the class in the fence; group 1, if any, is the number in it.
        language: the only language that takes this tag.
        badge: the text readers see; `{n}` is the number in the class.
        meaning: one sentence, shown when a reader points at the badge.
    """

    name: str
    pattern: re.Pattern[str]
    language: str
    badge: str
    meaning: str

    @property
    def kind(self) -> str:
        """The tag without its number: gpu, ranks, raises or output."""
        return self.name.partition("-")[0]


TAGS = (
    Tag(
        "gpu",
        re.compile("gpu"),
        "python",
        "GPU",
        "Needs a CUDA device: tests run it there and only compile it elsewhere.",
    ),
    Tag(
        "ranks-N",
        re.compile("ranks-([2-9]|1[0-6])"),
        "python",
        "{n} processes",
        "Complete in itself: {n} processes run it, with the process group already initialised.",
    ),
    Tag(
        "raises",
        re.compile("raises"),
        "python",
        "raises",
        "Stops with an error on purpose: tests require it.",
    ),
    Tag(
        "output",
        re.compile("output"),
        "text",
        "output",
        "What the program above prints: tests compare it exactly.",
    ),
)


@dataclass(frozen=True)
class Use:
    """A tag as one fence carries it, with the number that its class holds."""

    tag: Tag
    number: int

    @property
    def badge(self) -> str:
        """The text on the badge."""
        return self.tag.badge.format(n=self.number)

    @property
    def meaning(self) -> str:
        """The sentence behind the badge."""
        return self.tag.meaning.format(n=self.number)


def find(css_class: str) -> Use | None:
    """Return the tag that a class of a fence stands for, None for any other class."""
    for tag in TAGS:
        if match := tag.pattern.fullmatch(css_class):
            return Use(tag, int(match[1]) if tag.pattern.groups else 0)
    return None


def known() -> str:
    """Every tag as it is written in a fence, for messages."""
    return ", ".join(f"{tag.language} {{.{tag.name}}}" for tag in TAGS)
