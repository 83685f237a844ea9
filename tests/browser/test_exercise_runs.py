"""An exercise with real Python in the browser: from a wrong answer to a tick, and each verdict."""

from exercise import EACH_ALONE, SLUG, SOLUTION, STARTER, entry

FAILS = """\
def clip_grad_norm(grads, max_norm):
    return undefined_name
"""
SYNTAX = """\
def clip_grad_norm(grads, max_norm:
    return 0.0
"""
MARKUP = """\
def clip_grad_norm(grads, max_norm):
    print("<img src=x onerror='window.attacked = true'>")
    raise ValueError("<b>bold</b>")
"""
FLOOD = """\
def clip_grad_norm(grads, max_norm):
    for number in range(20_000):
        print(f"line {number}")
    return 5.0
"""
SLOW = """\
import time

def clip_grad_norm(grads, max_norm):
    time.sleep(0.05)
    return 5.0
"""


def test_first_exercise_from_opening_to_its_tick(exercise, context):
    assert exercise.text().startswith(STARTER.split("\n")[0])
    assert exercise.run(EACH_ALONE).startswith("Wrong answer: ")
    wrong = exercise.page.locator(".exercise-test.failed").first
    assert "Each array was clipped alone" in wrong.inner_text()
    for label in ("Call", "Expected", "Got", "Largest difference"):
        assert wrong.get_by_text(label, exact=True).is_visible()
    assert exercise.find("tick").is_hidden()

    assert exercise.run(SOLUTION).startswith("Solved: ")
    assert exercise.find("tick").is_visible()
    assert exercise.page.locator(".exercise-test:not(.passed)").count() == 0
    assert exercise.find("finish").get_by_role("link").is_visible()
    assert exercise.saved() == {
        "version": 1,
        "code": SOLUTION,
        "attempts": 2,
        "hints": 0,
        "solved": True,
    }
    exercise.find("path").get_by_role("link").click()
    item = exercise.page.locator(f".roadmap [data-slug={SLUG}]")
    item.locator("[aria-label='Solved:']").wait_for()
    assert context.foreign == []


def test_finish_is_said_when_the_last_exercise_is_solved(exercise):
    slugs = exercise.page.locator(".exercise").get_attribute("data-slugs").split()
    for slug in slugs:
        if slug != SLUG:
            key = f"gradstep:exercise:{slug}"
            item = [key, entry(solved=True)]
            exercise.page.evaluate("item => localStorage.setItem(...item)", item)
    exercise.page.reload()
    exercise.wait_until_live()
    finish = exercise.find("finish")
    assert finish.is_hidden()
    assert exercise.run(SOLUTION).startswith("Solved: ")
    assert f"All {len(slugs)} exercises solved" in finish.inner_text()


# the verdict and the number of tests, when the first of them is shown
FIRST_TEST = """() => new Promise((resolve) => {
  const tests = document.getElementsByClassName("exercise-test");
  const verdict = document.querySelector(".exercise-verdict");
  const details = document.querySelector(".exercise-details");
  document.querySelector(".exercise-run").click();
  new MutationObserver(() => tests.length && resolve([verdict.textContent, tests.length])).observe(
    details,
    { childList: true, subtree: true },
  );
})"""


def test_results_come_test_by_test(warm_exercise):
    warm_exercise.write(SLOW)
    assert warm_exercise.page.evaluate(FIRST_TEST) == ["", 1]
    warm_exercise.verdict()
    assert warm_exercise.page.locator(".exercise-test").count() > 1


def test_error_is_told_with_the_line_of_the_reader(warm_exercise):
    assert warm_exercise.run(FAILS).startswith("Error: your code failed in ")
    failed = warm_exercise.page.locator(".exercise-test.error").first
    assert "NameError: name 'undefined_name' is not defined" in failed.inner_text()
    assert 'File "solution.py", line 2' in failed.locator("pre").inner_text()
    mark = warm_exercise.page.locator(".cm-error-line")
    assert mark.inner_text().strip() == "return undefined_name"


def test_syntax_error_is_told_with_its_line(warm_exercise):
    assert warm_exercise.run(SYNTAX) == "Error: your code cannot be tested as it is."
    assert "SyntaxError: '(' was never closed" in warm_exercise.find("details").inner_text()
    assert "max_norm:" in warm_exercise.page.locator(".cm-error-line").inner_text()


def test_mark_goes_with_the_next_edit(warm_exercise):
    warm_exercise.run(FAILS)
    warm_exercise.page.locator(".cm-error-line").wait_for()
    warm_exercise.write(SOLUTION)
    assert warm_exercise.page.locator(".cm-error-line").count() == 0


def test_what_a_program_prints_is_text(warm_exercise):
    warm_exercise.run(MARKUP)
    details = warm_exercise.find("details")
    assert "<img src=x onerror=" in details.inner_text()
    assert "ValueError: <b>bold</b>" in details.inner_text()
    assert details.locator("img, b").count() == 0
    assert warm_exercise.page.evaluate("window.attacked") is None


def test_flood_of_output_is_capped_and_says_so(warm_exercise):
    assert warm_exercise.run(FLOOD).startswith("Wrong answer: ")
    printed = warm_exercise.find("block").first.locator("pre").text_content()
    assert printed.startswith("line 0\nline 1\n")
    total = warm_exercise.page.evaluate(
        "[...document.querySelectorAll('.exercise-block pre')]"
        ".reduce((sum, pre) => sum + pre.textContent.length, 0)"
    )
    assert len(printed) <= 65536 < 2 * total
    dropped = warm_exercise.find("dropped").first.text_content()
    assert dropped.endswith("more characters were printed; they are not kept.")
    assert warm_exercise.run(SOLUTION).startswith("Solved: ")


# from the press of Run to the verdict, less the time that the worker has the code
OVERHEAD = """async () => {
  const [{ worker }] = pythons;
  const verdict = document.querySelector(".exercise-verdict");
  const graded = new Promise((resolve) =>
    worker.addEventListener("message", ({ data, timeStamp }) => {
      if (data.type === "graded") resolve(timeStamp);
    }),
  );
  let sent;
  worker.postMessage = (message) => {
    sent = performance.now();
    Worker.prototype.postMessage.call(worker, message);
  };
  const shown = new Promise((resolve) =>
    new MutationObserver(() => verdict.textContent && resolve(performance.now())).observe(verdict, {
      childList: true,
    }),
  );
  const start = performance.now();
  document.querySelector(".exercise-run").click();
  return (await shown) - start - ((await graded) - sent);
}"""


def test_warm_run_costs_little_beyond_python(warm_exercise):
    warm_exercise.run(SOLUTION)
    # the least of several: what else the machine does is not the page's doing
    assert min(warm_exercise.page.evaluate(OVERHEAD) for _ in range(5)) < 100  # milliseconds
