"""Check what would be released: `make release-check`, with TAG=v1.2.3 for a release.

The package is built into dist, installed into an empty environment with what it depends on, and
the README's programs run there.
"""

import shutil
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.release.package import HEADING, ROOT, build, run, run_readme, version_of


def fault_of_tag(tag: str, version: str, changelog: str) -> str | None:
    """Say why this is no release of that version, None if it is one."""
    if tag != f"v{version}":
        return f"the tag is {tag!r}, the package built is {version}: tag a clean commit v1.2.3"
    newest = HEADING.search(changelog)
    if newest is None or newest["version"] != version:
        return f"CHANGELOG.md must begin with this release: write ## {version} - year-month-day"
    return None


def main(tag: str = "") -> int:
    """Build, install and try the package; return 1 if it is not what the tag says."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    wheel, _ = build(ROOT / "dist")
    if tag and (fault := fault_of_tag(tag, version_of(wheel), (ROOT / "CHANGELOG.md").read_text())):
        print(fault)
        return 1
    with TemporaryDirectory() as name:
        python = Path(name, "bin/python")
        venv.create(name, with_pip=True)
        quiet = ("--quiet", "--disable-pip-version-check")
        constraints = ("--constraint", ROOT / "constraints.txt")
        run(python, "-m", "pip", "install", *quiet, *constraints, wheel)
        print(f"{wheel.name}: the README's programs run, with {run_readme(python, Path(name))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
