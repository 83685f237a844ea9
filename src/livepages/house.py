"""The house form of a fence: what is refused, and how to write it instead."""

import re

from livepages import tags
from livepages.fences import PYTHON, Fence, Stray, is_fence

SETTING = r"(?:title|hl_lines|linenums)=\"[^\"]*\""
BRACES = rf"\{{ ?(?:\.[\w-]+|{SETTING})(?: (?:\.[\w-]+|{SETTING}))* ?\}}"
# language first, one space, then either braces or settings; nothing behind them
HOUSE = re.compile(rf"(?:`{{3,}}|~{{3,}})python(?: {BRACES}| {SETTING}(?: {SETTING})*)?")
OPTION = re.compile(r"""([a-zA-Z_]+)=("[^"]*"|'[^']*')""")


def fault_of(fence: Fence) -> str | None:
    """Say what is wrong with the header of a rendered fence, None if nothing is."""
    if fence.is_python and (fence.language != "python" or not HOUSE.fullmatch(fence.header)):
        return (
            f"{fence.header!r} looks like Python to the site, but is not in the form that is "
            f"tested; write {_house(fence.header)} or, to show it without running it, text"
        )
    if fence.is_python and not fence.in_page:
        return "a program must stand in the page; include its lines inside a ```python fence"
    if not fence.language:
        return f"{fence.header!r} names no language; write ```text for text that is only shown"
    if fence.language in {tag.kind for tag in tags.TAGS}:
        return f"{fence.header!r} names a tag but no language; write {tags.known()}"
    if "{" in fence.header and not re.search(rf" ?{BRACES}[ \t]*$", fence.header):
        return (
            f"{fence.header!r}: braces hold tags with a dot, and title, hl_lines and linenums in "
            f"double quotes, nothing else; write {_house(fence.header)}"
        )
    return _fault_of_tags(fence)


def _fault_of_tags(fence: Fence) -> str | None:
    uses = [(name, tags.find(name)) for name in fence.classes]
    if unknown := [name for name, use in uses if use is None]:
        return f"{fence.header!r}: unknown tag {'.' + unknown[0]!r}; the known ones: {tags.known()}"
    for name, use in uses:
        if use and use.tag.language != fence.language:
            return f"'.{name}' belongs on {use.tag.language}, not on {fence.language!r}"
    if len(uses) > 1:
        return f"{fence.header!r} has {len(uses)} tags; a block takes one"
    return None


def fault_of_stray(stray: Stray) -> str:
    """Say why what looks like a fence renders as text."""
    if stray.closed:
        return (
            f"{stray.header!r} is indented so deep that the site shows it as plain text; align "
            "it with the text around it, or show it inside a ````markdown fence"
        )
    if is_bare(stray.header):
        return "this closes no fence: what opened it is not a fence, or is indented otherwise"
    if is_fence(stray.header) and not re.match(r"[> \t]*(?:[-*+]|\d+[.)])[ \t]", stray.line):
        return f"{stray.header!r} is never closed at the same indentation"
    return (
        f"{stray.header!r} is not a code block to the site, it renders as text; write "
        f"{_house(stray.header)} on a line of its own"
    )


def is_bare(header: str) -> bool:
    """Whether a line is nothing but backticks or tildes."""
    return not header.strip("`~ \t")


def _house(header: str) -> str:
    """Write the header as it should be, keeping its language, tags and options."""
    body = header.strip("`~ \t")
    options = [f'{key}="{value[1:-1]}"' for key, value in OPTION.findall(body)]
    words = re.findall(r"\.?[\w+#-]+", OPTION.sub(" ", body))
    names = [word.lstrip(".#") for word in words]
    is_python = any(name.lower() in PYTHON for name in names)
    language = "python" if is_python else (names or ["text"])[0]
    classes = [f".{name}" for name in names if tags.find(name)]
    if classes:
        return f"```{language} {{{' '.join(classes + options)}}}"
    return " ".join([f"```{language}", *(o for o in options if not o.startswith("test"))])
