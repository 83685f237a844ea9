"""A Markdown extension: the frame of an exercise around its statement.

In `mkdocs.yml`:

    markdown_extensions:
      - livepages.exercise_pages

In docs/exercises/<slug>/index.md, alone on the line below the title:

    <!-- exercise <slug> -->

The whole page becomes three parts: the statement, the panel with the editor, and the help. What
needs JavaScript is hidden until docs/assets/exercises/page.js shows it; without, readers get the
starter in a text field, the hints, the solution, and links to the files.
"""

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from markdown import Markdown  # type: ignore[import-untyped]
from markdown.extensions import Extension  # type: ignore[import-untyped]
from markdown.postprocessors import Postprocessor  # type: ignore[import-untyped]
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import PythonLexer  # type: ignore[import-untyped]

from livepages import site as sites
from livepages.exercises import Exercise, ExerciseError, load

PLACEHOLDER = re.compile(r"<!-- exercise (?P<slug>\S+) -->")
CODE = re.compile(r"`([^`]+)`")


class _Frame(Postprocessor):  # type: ignore[misc]
    def run(self, text: str) -> str:
        found = PLACEHOLDER.search(text)
        if not found:
            return text
        exercises = load(sites.load(Path.cwd()).docs)
        title, statement = text[: found.start()], text[found.end() :]
        return frame(found["slug"], exercises, title, statement)


def frame(slug: str, exercises: list[Exercise], title: str, statement: str) -> str:
    """Return the page of an exercise as HTML.

    Args:
        slug: of the exercise.
        exercises: all of them, in the order of the roadmap.
        title: the HTML of the page down to its title.
        statement: the HTML of the page below the title.

    Raises:
        ExerciseError: if there is no exercise of that name.
    """
    slugs = [exercise.slug for exercise in exercises]
    if slug not in slugs:
        known = ", ".join(slugs) or "none"
        raise ExerciseError(f"<!-- exercise {slug} --> names no folder of docs/exercises: {known}")
    place = slugs.index(slug)
    exercise, following = exercises[place], _next(exercises[place + 1 : place + 2])
    text = _path(exercise) + title + _facts(exercise) + statement
    help_ = (
        f'{"".join(_help(exercise))}<p class="exercise-next" data-search-exclude>{following}</p>'
    )
    return (
        f'<div class="exercise" data-slug="{slug}" data-slugs="{" ".join(slugs)}">\n'
        f'<div class="exercise-text">{text}</div>\n{_panel(exercise, following)}\n'
        f'<div class="exercise-help" data-search-exclude>{help_}</div>\n</div>'
    )


def _path(exercise: Exercise) -> str:
    return (
        '<nav class="exercise-path" aria-label="Path" data-search-exclude><a href="../">Roadmap</a>'
        f'<span aria-hidden="true"> / </span><span>{escape(exercise.group)}</span></nav>'
    )


def _facts(exercise: Exercise) -> str:
    facts = [f"{exercise.minutes} minutes", *exercise.tags]
    return (
        '<p class="exercise-facts"><span class="exercise-tick" hidden>Solved</span> '
        f'<span class="exercise-{exercise.difficulty}">{exercise.difficulty}</span>'
        f"{''.join(f' · {escape(fact)}' for fact in facts)}</p>"
    )


def _panel(exercise: Exercise, following: str) -> str:
    starter = (exercise.folder / "starter.py").read_text("utf-8")
    # HTML drops a line break that directly follows the opening tag
    area = (
        '<textarea aria-label="solution.py" aria-describedby="exercise-keys" rows="16" '
        'spellcheck="false" autocapitalize="off" autocomplete="off" wrap="off">\n'
        f"{escape(starter)}</textarea>"
    )
    return PANEL.replace("AREA", area).replace("NEXT", following)


# no section inside: the search plugin takes the end of any for that of what it leaves out
PANEL = """\
<section class="exercise-panel" aria-label="Your solution" data-search-exclude>
<div class="exercise-bar">
<span class="exercise-file">solution.py</span>
<span class="exercise-python"><span class="exercise-state" role="status">Python idle</span>
<span class="exercise-share" aria-hidden="true"></span></span>
</div>
<div class="exercise-editor">AREA</div>
<div class="exercise-tools" hidden>
<button type="button" class="exercise-run">Run</button>
<button type="button" class="exercise-stop" aria-disabled="true">Stop</button>
<button type="button" class="exercise-reset">Reset</button>
<p id="exercise-keys">Press Run (<kbd>Cmd/Ctrl</kbd> + <kbd>Enter</kbd>) to test your code.
<kbd>Esc</kbd>, then <kbd>Tab</kbd> leaves the editor.</p>
</div>
<noscript><p>Grading in the browser needs JavaScript. Without it, take
<a href="starter.py">starter.py</a> and <a href="checks.py">checks.py</a>.</p></noscript>
<div class="exercise-notices" role="status"></div>
<div class="exercise-results" role="region" aria-label="Results">
<p class="exercise-verdict" role="status"></p>
<p class="exercise-finish" hidden><span class="exercise-count"></span> NEXT</p>
<div class="exercise-details"></div>
</div>
<dialog class="exercise-dialog" aria-labelledby="exercise-question">
<form method="dialog">
<p id="exercise-question">Reset the editor to the starter? You can undo it.</p>
<button value="">Keep my code</button> <button value="reset">Reset</button>
</form>
</dialog>
</section>"""


def _help(exercise: Exercise) -> Iterator[str]:
    count = len(exercise.hints)
    yield "<h2>Hints and solution</h2>"
    for number, hint in enumerate(exercise.hints, 1):
        text = CODE.sub(r"<code>\1</code>", escape(hint))
        yield (
            f'<details class="exercise-hint"><summary>Hint {number} of {count}</summary>'
            f"<p>{text}</p></details>"
        )
    solution = (exercise.folder / "solution.py").read_text("utf-8")
    code = highlight(solution, PythonLexer(), HtmlFormatter(wrapcode=True))
    yield (
        '<p class="exercise-lock" hidden><span></span> '
        '<button type="button">Show it anyway</button></p>'
        f'<details class="exercise-solution"><summary>Solution</summary>{code}</details>'
    )


def _next(following: list[Exercise]) -> str:
    if not following:
        return '<a href="../">Back to the roadmap</a>'
    [exercise] = following
    return f'Next exercise: <a href="../{exercise.slug}/">{escape(exercise.title)}</a>'


class ExercisePageExtension(Extension):  # type: ignore[misc]
    """Puts the frame around the statement."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 (Markdown's name)
        """Register behind raw_html (30), which puts the comment back."""
        md.postprocessors.register(_Frame(md), "livepages_exercise_pages", 25)


def makeExtension(**options: Any) -> ExercisePageExtension:  # noqa: N802 (Markdown's name)
    """Return the extension, as Markdown asks for it."""
    return ExercisePageExtension(**options)
