"""What a reader wrote is never lost: reloads, reset, damaged entries, two tabs, full storage."""

import pytest
from exercise import SLUG, STARTER, Exercise, entry

MINE = "# my own text\n"
THEIRS = "# from the other tab\n"


def test_reload_keeps_the_code(exercise):
    exercise.write(MINE)
    exercise.page.reload()
    exercise.wait_until_live()
    assert exercise.text() == MINE


def test_code_that_is_the_starter_again_follows_a_new_starter(exercise):
    exercise.write(MINE)
    exercise.write(STARTER)
    assert exercise.saved()["code"] is None


def test_reset_asks_and_can_be_undone(exercise):
    exercise.write(MINE)
    exercise.find("reset").click()
    exercise.page.keyboard.press("Escape")
    assert exercise.text() == MINE
    exercise.find("reset").click()
    exercise.find("dialog").get_by_role("button", name="Reset").click()
    exercise.page.get_by_text("Your code was reset to the starter.").wait_for()
    assert exercise.text() == STARTER
    exercise.page.reload()  # the offer stands until the reader writes on
    exercise.wait_until_live()
    exercise.page.get_by_role("button", name="Undo").click()
    assert exercise.text() == MINE
    assert exercise.saved()["code"] == MINE


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"version": 1, "code": "de', id="cut-off"),
        pytest.param(entry(version=2), id="version"),
    ],
)
def test_damaged_entry_is_kept_and_told(exercise, text):
    exercise.save(text)
    exercise.page.reload()
    exercise.wait_until_live()
    assert exercise.text() == STARTER
    notice = exercise.find("notice")
    assert f"What was saved of “{SLUG}” could not be read" in notice.inner_text()
    notice.get_by_role("button", name="Put its text into the editor").click()
    assert exercise.text().strip() == text
    exercise.page.reload()
    exercise.wait_until_live()
    exercise.page.get_by_role("button", name="Delete it").click()
    kept = "Object.keys(localStorage).filter((key) => key.startsWith('gradstep:unreadable:'))"
    assert exercise.page.evaluate(kept) == []
    assert exercise.text().strip() == text


def test_storage_that_is_full_is_told(exercise):
    exercise.page.evaluate(
        "() => { Storage.prototype.setItem = () => { "
        "throw new DOMException('', 'QuotaExceededError'); }; }"
    )
    exercise.write(MINE)
    notice = exercise.find("notice")
    assert "does not save your code (QuotaExceededError)" in notice.inner_text()
    assert exercise.text() == MINE


def test_storage_that_is_blocked_is_survived(context, server):
    context.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('', "
        "'SecurityError'); } })"
    )
    exercise = Exercise(context, server.url)
    exercise.write(MINE)
    assert "does not save your code (SecurityError)" in exercise.find("notice").inner_text()
    assert exercise.text() == MINE


def test_other_tab_is_followed_and_can_be_undone(context, server):
    one, other = Exercise(context, server.url), Exercise(context, server.url)
    one.write(MINE)
    other.page.get_by_text(MINE.strip()).wait_for()
    for text in ("# f\n", "# from\n", THEIRS):
        other.write(text)
    one.page.get_by_text(THEIRS.strip()).wait_for()
    notice = one.page.get_by_text("The code was changed in another tab")
    assert notice.count() == 1
    one.page.get_by_role("button", name="Undo").click()
    assert one.text() == MINE
    other.page.get_by_text(MINE.strip()).wait_for()
    other.save(entry(solved=True))
    one.find("tick").wait_for()


def test_hints_come_one_by_one_and_are_remembered(exercise):
    hints = exercise.find("hint")
    assert [hints.nth(i).is_visible() for i in range(hints.count())].count(True) == 1
    hints.first.locator("summary").click()
    hints.nth(1).wait_for()  # a browser tells of an opening later than of the click
    assert exercise.saved()["hints"] == 1
    exercise.page.reload()
    exercise.wait_until_live()
    assert [hints.nth(i).is_visible() for i in range(hints.count())].count(True) == 2


def test_solution_opens_after_three_attempts(exercise):
    assert exercise.find("solution").is_hidden()
    assert "after 3 attempts: 0 so far" in exercise.find("lock").inner_text()
    exercise.save(entry(attempts=3))
    exercise.page.reload()
    exercise.wait_until_live()
    assert exercise.find("lock").is_hidden()
    exercise.find("solution").locator("summary").click()
    assert "return norm" in exercise.find("solution").inner_text()


def test_solution_opens_on_demand(exercise):
    exercise.find("lock").get_by_role("button").click()
    assert "return norm" in exercise.find("solution").inner_text()
    assert exercise.page.evaluate("document.activeElement.textContent") == "Solution"
