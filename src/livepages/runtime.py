"""Place Python for the browser into a built site: `python -m livepages.runtime SITE`.

SITE/assets/pyodide/ then holds Pyodide's core, from its npm package, and NumPy's wheel, from a
folder or the Pyodide CDN. Both are checked by hash, and kept in a cache. Where one is not to be
had, nothing is placed and the exercises load Python from the CDN: a message says so.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

FOLDER = "assets/pyodide"
# the one place that names the version: the page's own
VERSION_FILE = "assets/exercises/version.js"
VERSION = re.compile(r'PYODIDE_VERSION = "([\d.]+)"')
CDN = "https://cdn.jsdelivr.net/pyodide/v{version}/full/"
# of the npm package, which names the wheel and its hash in turn
SHA256 = "89d5d952675eb08e11286e52c7238f1248ce71726e896db9703e73bef23dc343"
LOCK = "pyodide-lock.json"
CORE = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
SECONDS = 60  # for a download
NOTICE = """\
Pyodide {version}: Mozilla Public License 2.0, https://github.com/pyodide/pyodide
It contains CPython and its standard library: PSF License, https://docs.python.org/3/license.html
NumPy: BSD licence, whose text is in the wheel, https://github.com/numpy/numpy
All files but pyodide-lock.json, which names NumPy alone, are as their authors published them.
"""


class UnavailableError(Exception):
    """A file is not to be had here and now."""


class DamagedError(Exception):
    """A file is not the one that was asked for."""


def version_of(site: Path) -> str:
    """Read the version that the pages of a built site load.

    Raises:
        DamagedError: if the site does not say.
    """
    file = site / VERSION_FILE
    found = VERSION.search(file.read_text("utf-8")) if file.is_file() else None
    if not found:
        raise DamagedError(f"{file} names no PYODIDE_VERSION; build the site first: make site")
    return found[1]


def place(site: Path, cache: Path, wheels: Path | None = None) -> None:
    """Put all files of the runtime into a built site, or none.

    Args:
        site: the folder of the built site.
        cache: where downloads are kept; created if missing.
        wheels: a folder to look for NumPy's wheel before it is downloaded.

    Raises:
        UnavailableError: if a file is neither cached nor to be had.
        DamagedError: if a file has another hash than it must have.
    """
    version = version_of(site)
    cache.mkdir(parents=True, exist_ok=True)
    package = _core(version, cache)
    lock = json.loads(package[LOCK])
    numpy = lock["packages"]["numpy"]
    wheel = _wheel(numpy["file_name"], numpy["sha256"], version, cache, wheels)
    lock["packages"] = {"numpy": numpy}
    files = {name: package[name] for name in CORE} | {
        LOCK: json.dumps(lock).encode(),
        numpy["file_name"]: wheel,
        "NOTICE.txt": NOTICE.format(version=version).encode(),
    }
    (site / FOLDER).mkdir(exist_ok=True)
    for name, content in files.items():
        (site / FOLDER / name).write_bytes(content)


def _core(version: str, cache: Path) -> dict[str, bytes]:
    """The files of the npm package that a browser needs, and its lock file."""
    content = _cached(
        cache / f"pyodide-{version}.tgz", SHA256, lambda file: _pack(f"pyodide@{version}", file)
    )
    with tarfile.open(fileobj=BytesIO(content)) as archive:
        found = {name: archive.extractfile(f"package/{name}") for name in (*CORE, LOCK)}
        return {name: file.read() for name, file in found.items() if file}


def _pack(package: str, file: Path) -> None:
    command = ["npm", "pack", package, "--fetch-retries=0", "--pack-destination", str(file.parent)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS)
    except FileNotFoundError as error:
        raise UnavailableError(f"npm, which brings {package}, is not installed") from error
    except subprocess.CalledProcessError as error:
        said = str(error.stderr).strip().partition("\n")[0]
        raise UnavailableError(f"npm cannot get {package}: {said}") from error
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"npm cannot get {package} within {SECONDS} s") from error


def _wheel(name: str, digest: str, version: str, cache: Path, wheels: Path | None) -> bytes:
    if wheels and (wheels / name).is_file():
        return _checked(wheels / name, digest)
    url = CDN.format(version=version) + name
    return _cached(cache / name, digest, lambda file: _download(url, file))


def _download(url: str, file: Path) -> None:
    try:
        with urlopen(url, timeout=SECONDS) as answer:
            content: bytes = answer.read()
    except (URLError, TimeoutError) as error:
        raise UnavailableError(f"cannot download {url}: {error}") from error
    file.write_bytes(content)


def _cached(file: Path, digest: str, fetch: Callable[[Path], None]) -> bytes:
    """The content of a file in the cache, fetched if it is not there."""
    if not file.is_file():
        fetch(file)
    return _checked(file, digest)


def _checked(file: Path, digest: str) -> bytes:
    content = file.read_bytes()
    found = sha256(content).hexdigest()
    if found != digest:
        raise DamagedError(
            f"{file} has the sha256 {found}, but must have {digest}; delete it and try again. "
            "After a change of PYODIDE_VERSION: compare with the publisher's hash first, then "
            "write the new one into SHA256 of livepages.runtime"
        )
    return content


def main(arguments: list[str]) -> int:
    """Place the runtime; return 1 for a damaged file, 0 also where one is not to be had."""
    parser = argparse.ArgumentParser(prog="python -m livepages.runtime", description=__doc__)
    parser.add_argument("site", type=Path, help="the folder of the built site")
    parser.add_argument("--cache", type=Path, default=Path(".venv/runtime"))
    parser.add_argument(
        "--wheels",
        type=Path,
        default=os.environ.get("GRADSTEP_WHEELS") or None,
        help="a folder that has NumPy's wheel; by default that of GRADSTEP_WHEELS",
    )
    options = parser.parse_args(arguments)
    try:
        place(options.site, options.cache, options.wheels)
    except DamagedError as error:
        print(error, file=sys.stderr)
        return 1
    except UnavailableError as error:
        print(f"{error}\nExercises on this site will load Python from the Pyodide CDN.")
        return 0
    print(f"Python for the exercises is in {options.site / FOLDER}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
