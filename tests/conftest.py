"""One strict build and one browser for all tests that look at the site."""

import shutil

import pytest

from tests.site.built_site import ROOT, build

# root needs the first; the others keep chromium from talking to hosts of its own
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    """A copy of all that the site is made of, for builders that write beside it."""
    folder = tmp_path_factory.mktemp("sources")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    for name in ("docs", "snippets", "src"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="session")
def site(sources, tmp_path_factory):
    """The folder of the whole site, as MkDocs builds it."""
    folder = tmp_path_factory.mktemp("mkdocs") / "site"
    result = build("mkdocs", "--site-dir", str(folder), cwd=sources)
    assert result.returncode == 0, result.stdout
    return folder


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs chromium on the path")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGS)
        yield browser
        browser.close()
