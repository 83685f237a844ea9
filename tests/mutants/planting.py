"""Plant one wrong text in a copy of the repository, and see whether the pages notice.

A table (`*.toml`) holds mutants: of the reference implementation, or of a page itself. Each is
declared by the right text, which its file holds exactly once, and by the wrong one.
"""

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
TABLES = ("ranks", "clipping", "accumulation", "state", "memory", "pages", "build")
COPIED = ("conftest.py", "docs", "mkdocs.yml", "pyproject.toml", "snippets", "src")
LIMIT = 300  # seconds; a block that hangs is failed long before
PYTEST = ("-m", "pytest", "-qx", "--no-header", "-pno:cacheprovider", "-pno:hypothesispytest")
BROKEN = re.compile(r"\b(SyntaxError|ImportError|ModuleNotFoundError|NameError)\b")
# what tells most in a report: the line printed instead, the assertion, the error
TELLING = (r" +\+ .*", r" +assert .*", r" *[\w.]*(?:Error|Warning|Exception)\b.*", r"docs/.*: .*")
RANKS = re.compile(r"every rank:|rank \d+:")


@dataclass(frozen=True)
class Mutant:
    """One wrong text.

    Args:
        table: Where it is declared.
        name: Unique in all tables.
        idea: What it gets wrong.
        file: The file that holds `right` exactly once, below the root.
        right: The text that is replaced.
        wrong: What replaces it.
        page: The page that must fail; by default the file itself.
    """

    table: str
    name: str
    idea: str
    file: str
    right: str
    wrong: str
    page: str = ""

    @property
    def command(self) -> tuple[str, ...]:
        """What has to fail: the tests of one page, or the strict build."""
        if self.table == "build":
            return ("-m", "mkdocs", "build", "--strict")
        return (*PYTEST, self.page or self.file)

    def fault(self, root: Path = ROOT) -> str | None:
        """Say why it cannot be planted, None if it can."""
        place = root / self.file
        found = place.read_text("utf-8").count(self.right) if place.is_file() else 0
        if found == 1 and self.right != self.wrong:
            return None
        return (
            f"tests/mutants/{self.table}.toml, {self.name}: the right text must stand exactly "
            f"once in {self.file} and differ from the wrong one, got {found} times:\n{self.right}\n"
            "Copy it anew from the file, with a neighbouring line if it is there twice."
        )


@dataclass(frozen=True)
class Verdict:
    """What happened to a mutant, and the first line of the failure."""

    killed: bool
    how: str
    seconds: float


def load(table: str) -> list[Mutant]:
    """The mutants of a table, in its order."""
    entries = tomllib.loads((Path(__file__).parent / f"{table}.toml").read_text("utf-8"))
    return [Mutant(table, name, **entry) for name, entry in entries.items()]


def mutants() -> list[Mutant]:
    """All of them."""
    return [mutant for table in TABLES for mutant in load(table)]


def run(mutant: Mutant) -> Verdict:
    """Plant a mutant and run what must fail."""
    if fault := mutant.fault():
        return Verdict(False, fault, 0.0)
    started = time.perf_counter()
    status, text = in_copy(mutant.command, mutant)
    how = first_failure(text)
    broken = mutant.file.startswith("src/") and BROKEN.search(how)
    if broken:
        how = f"it does not even run, which proves nothing: {how}"
    killed = status not in (0, None) and bool(how) and not broken
    return Verdict(killed, how or f"exit {status}", time.perf_counter() - started)


def in_copy(command: tuple[str, ...], mutant: Mutant | None = None) -> tuple[int | None, str]:
    """Run Python in a copy of the repository; return its status (None: no end) and its output."""
    with TemporaryDirectory(prefix="mutant-") as name:
        root = Path(name).resolve()
        for entry in COPIED:
            copy = shutil.copytree if (ROOT / entry).is_dir() else shutil.copy2
            copy(ROOT / entry, root / entry)
        if mutant:
            place = root / mutant.file
            place.write_text(place.read_text("utf-8").replace(mutant.right, mutant.wrong), "utf-8")
        # before the installed package: all that is imported comes from the copy
        own = {"PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1", "NO_MKDOCS_2_WARNING": "1"}
        try:
            done = subprocess.run(
                [sys.executable, *command],
                cwd=root,
                env=os.environ | own,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LIMIT,
            )
        except subprocess.TimeoutExpired:
            return None, ""
        return done.returncode, done.stdout.replace(f"{root}/", "")


def first_failure(text: str) -> str:
    """The block that failed and the line that tells most; empty without a failure."""
    if built := re.search(r"^(?:WARNING|ERROR) +-  (.*(?:\n  +-.*)?)", text, re.MULTILINE):
        return " ".join(built[1].split())
    failed = re.search(r"^(?:FAILED|ERROR) docs/(\S+)", text, re.MULTILINE)
    if not failed:
        return ""
    report = text.partition(" ERRORS ===")[2] or text.partition(" FAILURES ===")[2]
    report = report.partition("short test summary")[0]
    told = (re.search(rf"^{line}", report, re.MULTILINE) for line in TELLING)
    # behind a line of underscores and the one that names the block
    otherwise = [x for x in report.split("\n")[3:] if x.strip() and not RANKS.match(x)]
    line = next((found[0] for found in told if found), "".join(otherwise[:1])).strip()
    return f"{failed[1]}: {line}"
