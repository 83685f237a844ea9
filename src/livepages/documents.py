"""What Sybil sees of a page: a document whose regions are the page's programs."""

from collections.abc import Iterator
from pathlib import Path

from sybil import Document, Example, Region, Sybil
from sybil.text import LineNumberOffsets

from livepages.pages import parse
from livepages.running import PageRun, Settings
from livepages.site import Site


class PageDocument(Document):
    """A page with the run of its programs; Sybil's namespace is that of the page."""

    run: PageRun


class PageParser:
    """A Sybil parser: the regions are what the site renders as programs."""

    def __init__(self, site: Site, settings: Settings) -> None:
        """Parse pages of this site."""
        self.site = site
        self.settings = settings

    def __call__(self, document: Document) -> Iterator[Region]:
        """Yield a region for every program."""
        assert isinstance(document, PageDocument)
        page = parse(self.site, Path(document.path), document.text)
        document.run = PageRun(page, self.settings)
        document.namespace = document.run.interpreter.main.__dict__
        offsets = LineNumberOffsets(document.text + "\n")
        for program in page.programs:
            start = offsets.get(program.place.line - 1, 0)
            end = offsets.get(program.fence.closing[0].line, 0)
            yield Region(start, min(end, document.end), program, _evaluate)


def _evaluate(example: Example) -> None:
    """Run the program after what it depends on; its result is kept in the run."""
    assert isinstance(example.document, PageDocument)
    example.document.run.upto(example.parsed)


class PageSybil(Sybil):
    """Sybil with readable, stable ids."""

    def __init__(self, site: Site, settings: Settings) -> None:
        """Collect the pages of a site."""
        super().__init__(
            parsers=[PageParser(site, settings)],
            patterns=["*.md"],
            path=str(site.docs),
            encoding="utf-8-sig",
            document_types={".md": PageDocument},
        )

    def identify(self, example: Example) -> str:
        """Name an example by its title or ordinal, not by its line."""
        name: str = example.parsed.name
        return name
