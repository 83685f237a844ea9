"""Check the published site against the page tests: `python -m livepages.check [site]`.

Every code block of a page is the text that the tests saw, nothing that looks like Python
escaped them, nothing unrendered is left, and no page loads anything from another host.
"""

import sys
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

from livepages import site as sites
from livepages.fences import PYTHON
from livepages.html import CSS_URL, PublishedPage, is_foreign
from livepages.pages import PageError, read
from livepages.site import Site


def faults(site: Site, built: Path) -> Iterator[str]:
    """Yield everything that is wrong with a built site, with file and line."""
    files = sorted(built.rglob("*.html"))
    if not files:
        yield f"{built} holds no HTML; build the site first: make site"
    if not site.extensions.get("pymdownx.highlight", {}).get("pygments_lang_class"):
        yield "mkdocs.yml: set pygments_lang_class of pymdownx.highlight: it names the languages"
    expected = {_published(site, path, built): path for path in site.pages()}
    for missing in sorted(expected.keys() - set(files)):
        yield f"{site.relative(expected[missing])} was not published as {missing}"
    for file in files:
        page = PublishedPage(file.read_text("utf-8"))
        where = site.relative(file)
        yield from (f"{where}:{fault}" for fault in _text_faults(page))
        for line, url in page.loads:
            if is_foreign(url, site.url):
                yield f"{where}:{line}: loads {url} from another host; keep a copy in the site"
        if file in expected:
            yield from (f"{where}:{fault}" for fault in _block_faults(site, expected[file], page))
    yield from _css_faults(site, built)


def _published(site: Site, path: Path, built: Path) -> Path:
    """Where MkDocs puts a page: a folder of its own, or a file beside the others."""
    name = path.relative_to(site.docs)
    if name.stem in {"index", "README"}:
        return built / name.parent / "index.html"
    flat = built / name.with_suffix(".html")
    return flat if flat.exists() else built / name.with_suffix("") / "index.html"


def _text_faults(page: PublishedPage) -> Iterator[str]:
    for line, starts, text in page.prose:
        if "-8<-" in text:
            yield f"{line}: an include was not resolved: {text.strip()!r}"
        if "Traceback (most recent call last)" in text:
            yield f"{line}: a traceback stands in the text: {text.strip()[:80]!r}"
        if starts and text.lstrip().startswith(("```", "~~~")):
            yield f"{line}: a fence was not rendered: {text.strip()[:80]!r}"
    for block in page.blocks:
        if not block.text.strip():
            yield f"{block.line}: a code block is empty"


def _block_faults(site: Site, path: Path, page: PublishedPage) -> Iterator[str]:
    """Compare the published blocks with the tested and the declared ones, in order."""
    try:
        fences = list(read(site, path).fences)
    except PageError as error:
        yield f"1: the page cannot be tested:\n{error}"
        return
    tested = [(fence.is_python, _code(fence.text)) for fence in fences]
    published = [(block.language in PYTHON, _code(block.text)) for block in page.blocks]
    for what, i, j, m, n in SequenceMatcher(None, tested, published, False).get_opcodes():
        if what == "equal":
            continue
        for fence in fences[i:j]:
            yield f"1: {fence.opening[0]} is not published as tested ({fence.header})"
        for block, (is_python, code) in zip(page.blocks[m:n], published[m:n], strict=True):
            if is_python:
                first = code.split("\n")[0]
                yield f"{block.line}: a Python block that no test saw starts {first!r}"


def _code(text: str) -> str:
    # highlighting strips blank lines around the code
    return text.strip("\n").rstrip()


def _css_faults(site: Site, built: Path) -> Iterator[str]:
    for file in sorted(built.rglob("*.css")):
        for url in CSS_URL.findall(file.read_text("utf-8")):
            if is_foreign(url, site.url):
                yield f"{site.relative(file)}: loads {url} from another host"


def main(arguments: list[str]) -> int:
    """Print the faults of a built site; return 1 if there are any."""
    site = sites.load(Path.cwd())
    built = Path(*arguments or ["site"]).resolve()
    found = list(faults(site, built))
    print("\n".join(found) or f"{len(site.pages())} pages published as tested")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
