"""The first exercise in a browser, as a reader would use it."""

import json
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs/exercises/clip-by-global-norm"
SLUG = FOLDER.name
KEY = f"gradstep:exercise:{SLUG}"
STARTER = (FOLDER / "starter.py").read_text()
SOLUTION = (FOLDER / "solution.py").read_text()
EACH_ALONE = (FOLDER / "mistakes/each_alone.py").read_text()

ENDLESS = """\
def clip_grad_norm(grads, max_norm):
    while True:
        pass
"""

# which Pythons there are, and what the page said of them
WATCH = """
window.pythons = [];
window.Worker = class extends Worker {
  constructor(address, options) {
    super(address, options);
    if (options?.type !== "module") return; // the search of the theme
    const python = { isReady: false, worker: this };
    pythons.push(python);
    this.addEventListener("message", ({ data }) => {
      if (data.type === "ready") python.isReady = true;
    });
  }
  terminate() {
    super.terminate();
    window.pythons = pythons.filter(({ worker }) => worker !== this);
  }
};
"""


def entry(**fields):
    """What the page saves of an exercise, as text."""
    return json.dumps(
        {"version": 1, "code": None, "attempts": 0, "hints": 0, "solved": False} | fields
    )


class Exercise:
    """One open page of the exercise."""

    def __init__(self, context, url):
        self.url = f"{url}exercises/{SLUG}/"
        self.page = context.new_page()
        self.page.set_default_timeout(60_000)
        self.page.add_init_script(WATCH)
        self.page.goto(self.url, wait_until="load")
        self.wait_until_live()

    def wait_until_live(self):
        """Wait for the script of the page, and for the editor that any sign of life brings."""
        self.find("tools").wait_for()
        self.page.mouse.move(5, 5)
        self.page.mouse.move(9, 9)
        self.page.locator(".cm-content").wait_for()

    @property
    def editor(self):
        return self.page.get_by_role("textbox", name="solution.py")

    def find(self, name):
        return self.page.locator(f".exercise-{name}")

    def write(self, code):
        self.page.locator(".cm-content").fill(code)

    def text(self):
        """What the editor shows."""
        return "\n".join(self.page.locator(".cm-line").all_inner_texts()).replace("\n\n", "\n")

    def start(self, code):
        self.write(code)
        self.find("run").click()

    def verdict(self):
        """Wait for a verdict and return it."""
        self.page.wait_for_function("document.querySelector('.exercise-verdict').textContent")
        return self.find("verdict").inner_text()

    def run(self, code):
        self.start(code)
        return self.verdict()

    def wait_for_state(self, state):
        self.page.locator(f".exercise-python[data-state={state}]").wait_for()

    def wait_for_spare(self):
        self.page.wait_for_function("pythons.filter(({ isReady }) => isReady).length === 2")

    def saved(self):
        """The entry in the reader's storage."""
        text = self.page.evaluate("key => localStorage.getItem(key)", KEY)
        return text and json.loads(text)

    def save(self, text):
        self.page.evaluate("([key, text]) => localStorage.setItem(key, text)", [KEY, text])
