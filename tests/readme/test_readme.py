"""The README's programs run and print what it shows, as those of the pages do."""

from pathlib import Path

import pytest

from livepages import pages, site
from livepages.running import PageRun, Settings

ROOT = Path(__file__).parents[2]
README = pages.read(site.load(ROOT), ROOT / "README.md")
RUN = PageRun(README, Settings(ROOT))


@pytest.mark.parametrize("program", README.programs, ids=lambda program: program.name)
def test_readme_program_prints_what_is_shown(program: pages.Program) -> None:
    RUN.upto(program)
    result = RUN.results[program.name]
    assert program.output is not None
    assert result.status == "ran", "\n".join(result.message)


def test_readme_shows_a_result_within_100_words() -> None:
    before, program, _ = README.text.partition("```python")
    assert program
    assert len(before.split()) <= 100
    assert len(README.text.splitlines()) <= 150


def test_readme_has_its_programs() -> None:
    assert len(README.programs) == 2
