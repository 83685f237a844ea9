"""What is placed into a site for Python in the browser, from small stand-ins of the real files."""

import io
import json
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from livepages import runtime

DOCS = Path(__file__).parents[2] / "docs"
WHEEL = b"a wheel"
NUMPY = {"file_name": "numpy-1-any.whl", "sha256": sha256(WHEEL).hexdigest(), "version": "1"}
PLACED = {*runtime.CORE, runtime.LOCK, NUMPY["file_name"], "NOTICE.txt"}


def package():
    """What npm would bring: the core files and a lock file with one package too many."""
    lock = {"info": {"version": "1.2.3"}, "packages": {"numpy": NUMPY, "scipy": {}}}
    files = {name: name.encode() for name in runtime.CORE}
    files[runtime.LOCK] = json.dumps(lock).encode()
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return target.getvalue()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache that has the package, on a machine that reaches nothing."""
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / "pyodide-1.2.3.tgz").write_bytes(package())
    monkeypatch.setattr(runtime, "SHA256", sha256(package()).hexdigest())
    monkeypatch.setattr(runtime, "CDN", "http://127.0.0.1:9/")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("GRADSTEP_WHEELS", raising=False)
    return folder


@pytest.fixture
def wheels(tmp_path):
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / NUMPY["file_name"]).write_bytes(WHEEL)
    return folder


@pytest.fixture
def site(tmp_path):
    file = tmp_path / "site" / runtime.VERSION_FILE
    file.parent.mkdir(parents=True)
    file.write_text('export const PYODIDE_VERSION = "1.2.3";\n')
    return tmp_path / "site"


def placed(site):
    return {file.name: file.read_bytes() for file in (site / runtime.FOLDER).glob("*")}


def test_all_files_are_placed(site, cache, wheels):
    runtime.place(site, cache, wheels)
    assert placed(site).keys() == PLACED
    assert placed(site)["pyodide.mjs"] == b"pyodide.mjs"
    assert placed(site)[NUMPY["file_name"]] == WHEEL


def test_lock_file_names_numpy_alone(site, cache, wheels):
    runtime.place(site, cache, wheels)
    lock = json.loads(placed(site)[runtime.LOCK])
    assert lock == {"info": {"version": "1.2.3"}, "packages": {"numpy": NUMPY}}


def test_placing_twice_changes_nothing(site, cache, wheels):
    runtime.place(site, cache, wheels)
    first = placed(site)
    runtime.place(site, cache, wheels)
    assert placed(site) == first


def test_wheel_comes_from_the_cache_without_a_folder(site, cache):
    (cache / NUMPY["file_name"]).write_bytes(WHEEL)
    runtime.place(site, cache)
    assert placed(site).keys() == PLACED


def test_folder_of_wheels_comes_from_the_environment(site, cache, wheels, monkeypatch, capsys):
    monkeypatch.setenv("GRADSTEP_WHEELS", str(wheels))
    assert runtime.main([str(site), "--cache", str(cache)]) == 0
    assert capsys.readouterr().out == f"Python for the exercises is in {site / runtime.FOLDER}\n"
    assert placed(site).keys() == PLACED


def test_unreachable_wheel_places_nothing_and_says_so(site, cache, capsys):
    assert runtime.main([str(site), "--cache", str(cache)]) == 0
    message = capsys.readouterr().out
    assert message.startswith("cannot download http://127.0.0.1:9/numpy-1-any.whl: ")
    assert "will load Python from the Pyodide CDN" in message
    assert not (site / runtime.FOLDER).exists()


def test_missing_npm_places_nothing_and_says_so(site, cache, wheels, capsys):
    (cache / "pyodide-1.2.3.tgz").unlink()
    assert runtime.main([str(site), "--cache", str(cache), "--wheels", str(wheels)]) == 0
    message = capsys.readouterr().out
    assert message.startswith("npm, which brings pyodide@1.2.3, is not installed")
    assert not (site / runtime.FOLDER).exists()


def test_failing_npm_places_nothing_and_passes_on_what_it_said(
    site, cache, wheels, tmp_path, monkeypatch, capsys
):
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'npm error code ENOTFOUND' >&2\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (cache / "pyodide-1.2.3.tgz").unlink()
    assert runtime.main([str(site), "--cache", str(cache), "--wheels", str(wheels)]) == 0
    message = capsys.readouterr().out
    assert message.startswith("npm cannot get pyodide@1.2.3: npm error code ENOTFOUND\n")
    assert not (site / runtime.FOLDER).exists()


@pytest.mark.parametrize("name", ["cache/pyodide-1.2.3.tgz", "wheels/numpy-1-any.whl"])
def test_damaged_file_is_named_and_refused(site, cache, wheels, tmp_path, capsys, name):
    (tmp_path / name).write_bytes(b"damaged")
    assert runtime.main([str(site), "--cache", str(cache), "--wheels", str(wheels)]) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"{tmp_path / name} has the sha256 {sha256(b'damaged').hexdigest()}")
    assert "delete it and try again" in message
    assert not (site / runtime.FOLDER).exists()


def test_folder_that_is_no_site_is_refused(tmp_path, cache, capsys):
    assert runtime.main([str(tmp_path), "--cache", str(cache)]) == 1
    assert "names no PYODIDE_VERSION; build the site first" in capsys.readouterr().err


def test_pages_and_command_agree_on_version_and_host():
    assert runtime.version_of(DOCS)
    page = (DOCS / "assets/exercises/runtime.js").read_text()
    assert runtime.CDN.format(version="${PYODIDE_VERSION}") in page
