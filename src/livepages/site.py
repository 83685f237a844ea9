"""What `mkdocs.yml` says about rendering, read without loading the theme or plugins."""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.utils.yaml import get_yaml_loader, yaml_load
from pymdownx.snippets import SnippetExtension  # type: ignore[import-untyped]

# what MkDocs always loads, before the extensions of the file
BUILTIN = ("toc", "tables", "fenced_code")


@dataclass(frozen=True, eq=False)
class Site:
    """The parts of `mkdocs.yml` that decide how a page renders.

    Args:
        root: the folder of `mkdocs.yml`; paths in messages are relative to it.
        docs: the folder of the pages.
        extensions: Markdown extensions in order, with their options.
        url: where the site is published, empty if that is not said.
    """

    root: Path
    docs: Path
    extensions: dict[str, dict[str, Any]]
    url: str = ""

    @property
    def snippet_options(self) -> dict[str, Any]:
        """The options of pymdownx.snippets, defaults included; builds start in the root."""
        options: dict[str, Any] = SnippetExtension(
            **self.extensions.get("pymdownx.snippets", {})
        ).getConfigs()
        bases = options["base_path"]
        bases = [bases] if isinstance(bases, (str, os.PathLike)) else bases
        return {**options, "base_path": [self.root / base for base in bases]}

    def relative(self, path: str | Path) -> str:
        """Return `path` as messages show it: below the root, with forward slashes."""
        path = Path(path)
        return (path.relative_to(self.root) if path.is_relative_to(self.root) else path).as_posix()

    def pages(self) -> list[Path]:
        """Every page, in the order of their paths, as MkDocs finds them: no hidden ones."""
        found = sorted(self.docs.rglob("*.md"))
        return [path for path in found if self.is_page(path)]

    def is_page(self, path: Path) -> bool:
        """Say whether the site publishes this file as a page."""
        if path.suffix != ".md" or not path.is_relative_to(self.docs):
            return False
        return not any(part.startswith(".") for part in path.relative_to(self.docs).parts)


@cache
def load(root: Path) -> Site:
    """Read `mkdocs.yml` in `root`; `!relative` is understood as MkDocs understands it."""
    config = MkDocsConfig()
    config.config_file_path = str(root / "mkdocs.yml")
    with (root / "mkdocs.yml").open("rb") as file:
        settings = yaml_load(file, get_yaml_loader(config=config))
    extensions: dict[str, dict[str, Any]] = {name: {} for name in BUILTIN}
    for entry in settings.get("markdown_extensions", []):
        named = entry if isinstance(entry, dict) else {entry: {}}
        extensions |= {name: options or {} for name, options in named.items()}
    docs = root / settings.get("docs_dir", "docs")
    return Site(root, docs, extensions, settings.get("site_url") or "")
