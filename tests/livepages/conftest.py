"""A small site in a temporary folder, tested by a real pytest with the real wiring."""

import re
import textwrap
from pathlib import Path

import pytest

# loaded here once: pytester forgets what a run inside this process imports
from livepages import counts, documents, items, site  # noqa: F401

ROOT = Path(__file__).parents[2]

MKDOCS = """\
site_name: small
site_url: https://example.org/small/
markdown_extensions:
  - admonition
  - attr_list
  - md_in_html
  - pymdownx.details
  - pymdownx.highlight:
      pygments_lang_class: true
  - pymdownx.snippets:
      base_path: [!relative $config_dir]
      check_paths: true
      dedent_subsections: true
  - pymdownx.superfences
  - pymdownx.tabbed:
      alternate_style: true
  - livepages.badges
"""

SETTINGS = """\
[tool.pytest]
addopts = ["--strict-markers", "--strict-config", "--doctest-modules"]
filterwarnings = ["error"]
markers = ["gpu: needs CUDA"]
ranks_timeout = 20
"""


class Pages:
    """Writes pages and runs their tests."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.root = pytester.path
        self.write("mkdocs.yml", MKDOCS)
        self.write("pyproject.toml", SETTINGS)
        self.write("conftest.py", (ROOT / "conftest.py").read_text())

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), "utf-8")
        return path

    def page(self, text: str, name: str = "p.md") -> Path:
        return self.write(f"docs/{name}", text)

    def count(self) -> None:
        """Bring the table of counts up to date, so that only the blocks decide."""
        site.load.cache_clear()
        counts.update(site.load(self.root))

    def run(self, *arguments: str, count: bool = True) -> pytest.RunResult:
        if count:
            self.count()
        # hypothesis takes a second to load and has no part in pages
        return self.pytester.runpytest_inprocess(
            *(arguments or ("docs",)), "-p", "no:hypothesispytest"
        )

    def passes(self, text: str, **number: int) -> pytest.RunResult:
        """The page passes: the good twin of every fault."""
        self.page(text)
        result = self.run()
        assert result.ret == 0, "\n".join(result.outlines)
        if number:
            result.assert_outcomes(**number)
        return result

    def fails(self, text: str, *messages: str) -> pytest.RunResult:
        """The page fails, and says all of this; a message may run over lines."""
        self.page(text)
        result = self.run()
        assert result.ret == 1
        says(result, *messages)
        return result


def says(result: pytest.RunResult, *messages: str) -> None:
    text = re.sub(r"\s+", " ", "\n".join(result.outlines + result.errlines))
    for message in messages:
        assert re.sub(r"\s+", " ", message) in text, "\n".join(result.outlines)


@pytest.fixture
def pages(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Pages:
    # where these are set, pytest repeats whole messages in its summary
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("BUILD_NUMBER", raising=False)
    return Pages(pytester)
