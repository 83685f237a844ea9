"""The page around the editor: its weight, instant navigation, keys, screen readers, phones."""

import gzip
from importlib.util import find_spec
from pathlib import Path

import pytest
from exercise import EACH_ALONE, ENDLESS, SLUG, SOLUTION, Exercise

PHONE = {"width": 390, "height": 844}
WCAG_AA = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
COMPRESSED = (".woff2", ".png", ".gz")


def weight(response):
    """The bytes of a response as a server that compresses sends them."""
    body = response.body()
    return len(body) if response.url.endswith(COMPRESSED) else len(gzip.compress(body))


@pytest.mark.parametrize("slug", [SLUG, "additive-losses"])
def test_page_and_editor_are_light_and_ask_no_other_host(context, server, slug):
    responses = []
    context.on("response", lambda response: responses.append(response))
    page = context.new_page()
    page.goto(f"{server.url}exercises/{slug}/", wait_until="networkidle")
    page.mouse.move(5, 5)
    page.mouse.move(9, 9)
    page.locator(".cm-content").wait_for()
    weights = {response.url: weight(response) for response in responses}
    assert any(url.endswith("editor.bundle.js") for url in weights)
    assert sum(weights.values()) < 400_000, weights
    assert context.foreign == []


def test_python_waits_for_the_first_focus(context, server):
    del server.asked[:]
    exercise = Exercise(context, server.url)
    exercise.page.wait_for_load_state("networkidle")
    assert not [path for path in server.asked if "pyodide" in path or path.endswith(".py")]
    assert exercise.page.evaluate("pythons.length") == 0
    with exercise.page.expect_event("requestfinished", lambda request: ".whl" in request.url):
        exercise.editor.focus()
    assert context.foreign == []


def test_page_survives_instant_navigation(exercise):
    page = exercise.page
    page.evaluate("window.loadedOnce = true")
    exercise.start(ENDLESS)
    exercise.wait_for_state("running")
    exercise.find("path").get_by_role("link").click()
    page.locator(".roadmap").wait_for()
    assert page.evaluate("pythons.length") == 0
    page.go_back()
    exercise.wait_until_live()
    assert exercise.run(SOLUTION).startswith("Solved: ")
    assert exercise.page.locator(".cm-editor").count() == 1
    assert page.evaluate("window.loadedOnce")


def test_everything_works_from_the_keyboard(warm_exercise):
    exercise = warm_exercise
    page, keys = exercise.page, exercise.page.keyboard
    exercise.find("path").get_by_role("link").focus()
    while not exercise.editor.evaluate("element => element === document.activeElement"):
        keys.press("Tab")
    keys.press("Control+A")
    keys.insert_text(SOLUTION)
    keys.press("Control+Enter")
    assert exercise.verdict().startswith("Solved: ")
    assert exercise.editor.evaluate("element => element === document.activeElement")
    keys.press("Escape")
    for name in ("Run", "Reset"):
        focused = f"document.activeElement.textContent === '{name}'"
        while not page.evaluate(focused):
            keys.press("Tab")
    keys.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "Keep my code"
    keys.press("Tab")
    keys.press("Enter")
    page.get_by_text("Your code was reset to the starter.").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Reset"
    assert "..." in exercise.text()


def test_press_of_run_leaves_the_focus_in_the_editor(warm_exercise):
    warm_exercise.editor.focus()
    warm_exercise.run(SOLUTION)
    assert warm_exercise.editor.evaluate("element => element === document.activeElement")


def test_textarea_runs_by_keys_where_no_editor_comes(context, server):
    context.route("**/editor.bundle.js", lambda route: route.abort())
    page = context.new_page()
    page.goto(f"{server.url}exercises/clip-by-global-norm/")
    page.locator(".exercise-tools").wait_for()
    area = page.locator("textarea")
    area.fill(SOLUTION)
    area.press("Control+Enter")
    page.locator("[data-state=loading]").wait_for()
    assert page.locator(".cm-editor").count() == 0


def test_page_without_scripts_says_what_to_do(new_context, server):
    with new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{server.url}exercises/clip-by-global-norm/")
        assert "def clip_grad_norm" in page.locator("textarea").input_value()
        assert page.locator(".exercise-tools").is_hidden()
        for name in ("starter.py", "checks.py"):
            link = page.get_by_role("link", name=name)
            assert page.request.get(f"{page.url}{link.get_attribute('href')}").ok


@pytest.fixture
def violations():
    """Run axe-core on an open page and name what breaks its rules."""
    package = find_spec("axe_playwright_python")
    if package is None:
        pytest.skip("needs axe-playwright-python, which brings axe-core")

    def run(page):
        page.add_script_tag(path=Path(package.origin).with_name("axe.min.js"))
        result = page.evaluate("tags => axe.run({ runOnly: tags })", WCAG_AA)
        assert result["passes"]
        return [(broken["id"], node["html"]) for broken in result["violations"]
                for node in broken["nodes"]]  # fmt: skip

    return run


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_is_accessible_at_work(warm_exercise, violations, scheme):
    page = warm_exercise.page
    page.emulate_media(color_scheme=scheme)
    warm_exercise.run(EACH_ALONE)
    assert violations(page) == []
    warm_exercise.run("print('<b>')\nraise ValueError\n")
    assert violations(page) == []
    warm_exercise.run(SOLUTION)
    warm_exercise.find("reset").click()
    assert violations(page) == []
    page.keyboard.press("Escape")


def test_phone_shows_everything_without_scrolling_aside(warm_exercise):
    page = warm_exercise.page
    before = page.viewport_size
    page.set_viewport_size(PHONE)
    for code in (EACH_ALONE, "def clip_grad_norm(grads, max_norm):\n    print('x' * 500)\n    1/0"):
        warm_exercise.run(code)
        assert page.evaluate(OVERFLOW) == 0
    page.set_viewport_size(before)


def test_columns_stand_side_by_side_on_a_desk_only(warm_exercise):
    page = warm_exercise.page
    left, right = (warm_exercise.find(name).bounding_box() for name in ("text", "panel"))
    assert left["x"] + left["width"] <= right["x"]
    before = page.viewport_size
    page.set_viewport_size(PHONE)
    above, below = (warm_exercise.find(name).bounding_box() for name in ("text", "panel"))
    assert above["y"] + above["height"] <= below["y"]
    page.set_viewport_size(before)
