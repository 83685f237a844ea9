"""Every page in a browser: nothing from other hosts, no errors, a phone's width, both schemes."""

from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from built_site import ROOT

SITE_URL = "https://gradstep.github.io/gradstep/"
BELOW = "/gradstep/"
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
SCHEMES = {"light": "default", "dark": "slate"}
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 900}
WCAG_AA = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def address(page):
    """The address below the site of a Markdown file below docs."""
    return page.removesuffix(".md").removesuffix("index").rstrip("/") + "/" * (page != "index.md")


@pytest.fixture
def visit(browser, site):
    """Open a page at its published address and wait until it is quiet.

    The built files answer every request below that address. A request to any other
    address, a message on the console or an uncaught error fails the test.
    """
    faults = []

    def answer(route):
        path = unquote(urlsplit(route.request.url).path)
        file = site / path.removeprefix(BELOW) / ("index.html" if path.endswith("/") else "")
        if route.request.url.startswith(SITE_URL) and file.is_file():
            route.fulfill(path=file)
        else:
            faults.append(f"request: {route.request.url}")
            route.abort()

    def check_console(message):
        if message.type in ("error", "warning"):
            faults.append(f"console: {message.text}")

    with browser.new_context(reduced_motion="reduce") as context:
        context.route("**/*", answer)
        context.on("console", check_console)
        context.on("weberror", lambda error: faults.append(f"script: {error.error}"))
        page = context.new_page()

        def open_page(where):
            page.goto(SITE_URL + where, wait_until="networkidle")
            return page

        yield open_page
    assert faults == []


@pytest.mark.parametrize("markdown", PAGES)
def test_page_is_sound(visit, markdown):
    page = visit(address(markdown))
    assert page.locator("h1").count() == 1
    for media, scheme in SCHEMES.items():
        page.emulate_media(color_scheme=media)
        page.locator(f"body[data-md-color-scheme={scheme}]").wait_for()
        for viewport in (PHONE, DESKTOP):
            page.set_viewport_size(viewport)
            assert page.evaluate(OVERFLOW) == 0, (media, viewport)


@pytest.fixture
def violations():
    """Run rules of axe-core on an open page and name what breaks them."""
    package = find_spec("axe_playwright_python")
    if package is None:
        pytest.skip("needs axe-playwright-python, which brings axe-core")

    def run(page, options):
        page.add_script_tag(path=Path(package.origin).with_name("axe.min.js"))
        result = page.evaluate("options => axe.run(options)", options)
        assert result["passes"]
        return [(broken["id"], node["html"]) for broken in result["violations"]
                for node in broken["nodes"]]  # fmt: skip

    return run


@pytest.mark.parametrize("markdown", PAGES)
def test_page_is_accessible(visit, violations, markdown):
    page = visit(address(markdown))
    page.set_viewport_size(PHONE)
    # contrast is slow to judge and comes from the style sheets: see the next test
    rules = {"color-contrast": {"enabled": False}}
    assert violations(page, {"runOnly": WCAG_AA, "rules": rules}) == []


@pytest.mark.parametrize("where", ["lesson/clipping/", "reference/clipping/"])
def test_text_has_contrast(visit, violations, where):
    page = visit(where)
    for media, scheme in SCHEMES.items():
        page.emulate_media(color_scheme=media)
        page.locator(f"body[data-md-color-scheme={scheme}]").wait_for()
        assert violations(page, {"runOnly": ["color-contrast"]}) == [], media


def test_missing_page_is_sound(visit):
    assert "404" in visit("404.html").inner_text("h1")


def test_formulas_are_drawn_in_their_font(visit):
    page = visit("exercises/clip-by-global-norm/")
    root = page.locator("math[display=block] msqrt").first
    assert root.evaluate("root => root.getBoundingClientRect().height") > 20
    fonts = "[...document.fonts].filter(font => font.status === 'loaded').map(font => font.family)"
    assert any("STIX Two Math" in family for family in page.evaluate(fonts))


def test_search_finds_pages_below_the_path(visit):
    page = visit("")
    page.get_by_role("textbox", name="Search").press_sequentially("glossary")
    result = page.locator(".md-search-result__link").first
    result.wait_for()
    assert result.evaluate("link => link.href").startswith(SITE_URL + "reference/glossary/")
