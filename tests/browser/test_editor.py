"""The bundled editor in a bare page: keys, marks, and what a screen reader is told."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = """<!doctype html><html lang="en"><title>Editor</title>
<button>before</button><p id="keys">Esc, then Tab</p><div id="place"></div><button>after</button>"""
CREATE = """async (doc) => {
  const { createEditor } = await import("/assets/vendor/codemirror/editor.bundle.js");
  window.changes = [];
  window.runs = 0;
  window.editor = createEditor({
    parent: document.getElementById("place"),
    doc,
    label: "solution.py",
    help: "keys",
    cursor: doc.length,
    onChange: (text) => changes.push(text),
    onRun: () => (runs += 1),
  });
  editor.focus();
}"""


@pytest.fixture
def open_editor(browser):
    """Open the editor with some text and the cursor at its end."""

    def answer(route):
        path = urlsplit(route.request.url).path
        if path == "/":
            route.fulfill(body=PAGE, content_type="text/html")
        elif (file := DOCS / path[1:]).is_file():
            route.fulfill(path=file)
        else:
            route.fulfill(status=404)

    with browser.new_context() as context:
        context.route("**/*", answer)
        page = context.new_page()

        def open_editor(text=""):
            page.goto("https://example.org/")
            page.evaluate(CREATE, text)
            return page

        yield open_editor


def text_of(page):
    return page.evaluate("editor.text()")


def test_editor_names_itself_and_how_to_leave_it(open_editor):
    page = open_editor("a = 1")
    box = page.get_by_role("textbox", name="solution.py")
    assert box.get_attribute("aria-multiline") == "true"
    assert box.get_attribute("aria-describedby") == "keys"
    assert box.evaluate("box => box === document.activeElement")


def test_typing_indents_closes_brackets_and_is_told(open_editor):
    page = open_editor()
    page.keyboard.type("def f(x")
    assert text_of(page) == "def f(x)"
    page.keyboard.type("):")
    page.keyboard.press("Enter")
    page.keyboard.type("return x")
    assert text_of(page) == "def f(x):\n    return x"
    assert page.evaluate("changes.at(-1)") == text_of(page)


def test_control_enter_runs_and_leaves_the_text_alone(open_editor):
    page = open_editor("a = 1")
    page.keyboard.press("Control+Enter")
    assert page.evaluate("runs") == 1
    assert text_of(page) == "a = 1"


def test_tab_indents_and_shift_tab_takes_it_back(open_editor):
    page = open_editor("a = 1")
    page.keyboard.press("Tab")
    assert text_of(page) == "    a = 1"
    page.keyboard.press("Shift+Tab")
    assert text_of(page) == "a = 1"


@pytest.mark.parametrize("key", ["Escape", "Control+m"])
@pytest.mark.parametrize(("tab", "where"), [("Tab", "after"), ("Shift+Tab", "before")])
def test_editor_can_be_left_by_keys(open_editor, key, tab, where):
    page = open_editor("a = 1")
    page.keyboard.press(key)
    page.keyboard.press(tab)
    assert page.evaluate("document.activeElement.textContent") == where
    assert text_of(page) == "a = 1"


def test_new_text_is_told_and_can_be_undone(open_editor):
    page = open_editor("mine")
    page.evaluate("editor.setText('starter')")
    assert page.evaluate("changes") == ["starter"]
    page.keyboard.press("Control+z")
    assert text_of(page) == "mine"


def test_marked_line_shows_its_message_as_text(open_editor):
    page = open_editor("a = 1\nb = c\n")
    page.evaluate("editor.markError(2, '<b>NameError</b>: c')")
    message = page.locator(".cm-content .cm-error-message")
    assert message.inner_text() == "<b>NameError</b>: c"
    assert page.locator(".cm-error-line").inner_text() == "b = c"
    assert page.locator(".cm-error-gutter").inner_text().strip() == "!"
    assert text_of(page) == "a = 1\nb = c\n"


def test_mark_moves_with_its_line_until_that_is_edited(open_editor):
    page = open_editor("a = 1\nb = c")
    page.evaluate("editor.markError(2, 'NameError')")
    page.keyboard.press("Control+Home")
    page.keyboard.type("# new\n")
    assert page.locator(".cm-error-line").inner_text() == "b = c"
    page.keyboard.press("Control+End")
    page.keyboard.type("d")
    assert page.locator(".cm-error-line, .cm-error-message").count() == 0


@pytest.mark.parametrize("line", ["null", "0", "3"])
def test_mark_is_lifted_by_null_or_a_line_that_is_not_there(open_editor, line):
    page = open_editor("a\nb")
    page.evaluate("editor.markError(1, 'NameError')")
    page.evaluate(f"editor.markError({line}, 'NameError')")
    assert page.locator(".cm-error-line, .cm-error-message").count() == 0


def test_destroyed_editor_leaves_nothing(open_editor):
    page = open_editor("a")
    page.evaluate("editor.destroy()")
    assert page.locator("#place > *").count() == 0
