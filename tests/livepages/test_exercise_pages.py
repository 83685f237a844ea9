"""The frame that the page of an exercise gets around its statement."""

from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown import Markdown

from livepages import exercise_pages
from livepages.exercise_pages import frame
from livepages.exercises import Exercise, ExerciseError

STARTER = "\nif 1 < 2:  # </textarea>\n    ...\n"
PAGE = "# Title\n\n<!-- exercise one -->\n\nThe *statement*.\n"


@pytest.fixture
def exercises(tmp_path):
    """Two exercises, with the same files."""
    (tmp_path / "starter.py").write_text(STARTER)
    (tmp_path / "solution.py").write_text("answer = 42\n")
    fields = {"difficulty": "easy", "tags": ("a-tag",), "minutes": 5, "folder": tmp_path}
    hints = ("Use `a < b`.", "The end.")
    return [
        Exercise("one", "One", "Many & few", 1, hints=hints, **fields),
        Exercise("two", "Two & more", "Many & few", 2, hints=hints, **fields),
    ]


@pytest.fixture
def rendered(exercises, monkeypatch):
    """Render Markdown as on the site."""
    monkeypatch.setattr(exercise_pages, "load", lambda docs: exercises)
    monkeypatch.chdir(Path(__file__).parents[2])
    return Markdown(extensions=["fenced_code", "livepages.exercise_pages"]).convert


class Texts(HTMLParser):
    """The text of each element by its class."""

    def __init__(self, html):
        super().__init__()
        self.open, self.texts = [], {}
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        if tag != "input":
            self.open.append(dict(attributes).get("class") or tag)

    def handle_endtag(self, tag):
        self.open.pop()

    def handle_data(self, data):
        for name in self.open:
            self.texts[name] = self.texts.get(name, "") + data


def test_frame_holds_title_and_statement_beside_the_panel(rendered):
    texts = Texts(rendered(PAGE)).texts
    text = texts["exercise-text"]
    assert "Roadmap / Many & few" in text
    assert text.index("Title") < text.index("5 minutes · a-tag") < text.index("The statement.")
    assert "statement" not in texts["exercise-panel"]


def test_starter_is_in_the_text_field_to_the_letter(rendered):
    area = Texts(rendered(PAGE)).texts["textarea"]
    assert area == "\n" + STARTER  # of which a browser drops the first line break


def test_hints_have_a_counter_and_code(rendered):
    html = rendered(PAGE)
    assert "<summary>Hint 1 of 2</summary><p>Use <code>a &lt; b</code>.</p>" in html
    assert "<summary>Hint 2 of 2</summary>" in html
    assert "answer" in Texts(html).texts["exercise-solution"]


def test_next_exercise_is_that_of_the_roadmap(exercises):
    assert 'href="../two/">Two &amp; more</a>' in frame("one", exercises, "", "")
    last = frame("two", exercises, "", "")
    assert "Next exercise" not in last
    assert last.count('<a href="../">Back to the roadmap</a>') == 2  # when solved, and at the end


def test_page_that_shows_the_placeholder_has_no_frame(rendered):
    html = rendered("```html\n<!-- exercise one -->\n```\n")
    assert "&lt;!-- exercise one --&gt;" in html
    assert "textarea" not in html


def test_unknown_exercise_is_named_with_those_there_are(exercises):
    message = "<!-- exercise three --> names no folder of docs/exercises: one, two"
    with pytest.raises(ExerciseError, match=message):
        frame("three", exercises, "", "")
