"""Build the package, and run the programs of the README with it."""

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

from livepages import pages, site

ROOT = Path(__file__).parents[2]
HEADING = re.compile(
    r"## (?:(?P<version>\d+\.\d+\.\d+) - )?(?P<date>\d{4}-\d{2}-\d{2})", re.MULTILINE
)


def run(*command: str | Path, **options) -> str:
    """Run a command; return what it printed, or fail with all of it."""
    result = subprocess.run(command, capture_output=True, text=True, **options)
    if result.returncode:
        raise RuntimeError(f"{command} failed:\n{result.stdout}{result.stderr}")
    return result.stdout


def build(folder: Path, *options: str) -> list[Path]:
    """Build the package into a folder; return the files, the wheel first."""
    run(sys.executable, "-m", "build", "--outdir", folder, *options, ROOT)
    return sorted(folder.iterdir(), key=lambda file: file.suffix, reverse=True)


def version_of(wheel: Path) -> str:
    """The version in the name of a wheel."""
    return wheel.name.split("-")[1]


def files_of(archive: Path) -> set[str]:
    """The files in a wheel or source archive, the latter without its outermost folder."""
    if archive.suffix == ".whl":
        return set(ZipFile(archive).namelist())
    with tarfile.open(archive) as tar:
        return {name.partition("/")[2] for name in tar.getnames()}


def run_readme(python: str | Path, folder: Path, path: str = "") -> str:
    """Run the README's programs in a folder; return where they found gradstep.

    Raises:
        AssertionError: if they print something else than the README shows.
    """
    programs = pages.read(site.load(ROOT), ROOT / "README.md").programs
    first, *texts = (program.fence.text for program in programs)
    code = "\n".join([first, *texts, "import sys", "sys.stderr.write(gradstep.__file__)"])
    (folder / "readme.py").write_text(code)
    command = [python, "-W", "error", "readme.py"]
    environment = {**os.environ, "PYTHONPATH": path}
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    shown = "".join(f"{program.output.text}\n" for program in programs)
    assert result.returncode == 0, result.stderr
    assert result.stdout == shown, f"the README shows:\n{shown}\nit prints:\n{result.stdout}"
    return result.stderr
