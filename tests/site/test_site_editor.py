"""The committed editor is what its sources and pinned packages give, and stays small."""

import gzip
import json
import shutil
import subprocess

import pytest
from built_site import ROOT

FOLDER = ROOT / "docs/assets/vendor/codemirror"
SOURCES = ("package.json", "package-lock.json", "build.js", "entry.js")
BUILT = ("editor.bundle.js", "LICENSES")
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH")


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory):
    """A folder in which npm has built the editor again."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm on the path")
    folder = tmp_path_factory.mktemp("editor")
    for name in SOURCES:
        shutil.copy(FOLDER / name, folder)
    for command in (
        ["npm", "ci", "--ignore-scripts", "--fetch-retries=0"],
        ["npm", "run", "build"],
    ):
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if any(error in result.stderr for error in UNREACHABLE):
            pytest.skip("needs the packages of npm, which cannot be reached")
        assert result.returncode == 0, result.stdout + result.stderr
    return folder


@pytest.mark.parametrize("name", BUILT)
def test_committed_file_is_what_its_sources_give(rebuilt, name):
    same = (rebuilt / name).read_bytes() == (FOLDER / name).read_bytes()
    assert same, f"{name} differs from what its sources give; run: make editor"


def test_lock_file_pins_each_package_by_hash_alone():
    packages = json.loads((FOLDER / "package-lock.json").read_text())["packages"]
    del packages[""]
    assert len(packages) > 10
    for name, package in packages.items():
        assert package["integrity"].startswith("sha512-"), name
        assert "resolved" not in package, name  # it would name somebody's registry


def test_editor_weighs_at_most_140_kb():
    assert len(gzip.compress((FOLDER / "editor.bundle.js").read_bytes())) <= 140_000
