"""The roadmap, made from the front matter of the exercises."""

import subprocess
import sys
from xml.etree import ElementTree

import pytest
from markdown import Markdown

from livepages import site
from livepages.exercises import ExerciseError

EXTENSIONS = ["abbr", "md_in_html", "pymdownx.superfences", "toc", "livepages.roadmap"]


@pytest.fixture
def exercise(tmp_path, monkeypatch):
    """Write exercises into a site that is the working directory."""
    (tmp_path / "mkdocs.yml").write_text("site_name: small\n")
    monkeypatch.chdir(tmp_path)
    site.load.cache_clear()

    def write(slug, title="A title", group="Precision", order=1, tags="[numpy]", level="easy"):
        folder = tmp_path / "docs/exercises" / slug
        (folder / "mistakes").mkdir(parents=True)
        for name in ("starter.py", "solution.py", "checks.py", "mistakes/loop.py"):
            (folder / name).touch()
        (folder / "index.md").write_text(
            f"---\ntitle: {title}\ngroup: {group}\norder: {order}\ndifficulty: {level}\n"
            f'tags: {tags}\nminutes: 15\nhints: ["One."]\n---\n'
        )

    yield write
    site.load.cache_clear()


def render(page="# Exercises\n\nText.\n\n<!-- roadmap -->\n"):
    html = Markdown(extensions=EXTENSIONS).convert(page)
    return html, ElementTree.fromstring(f"<html>{html}</html>")


def words(element):
    return " ".join("".join(element.itertext()).split())


def test_roadmap_lists_the_groups_in_order_with_their_exercises(exercise):
    exercise("peak", group="Memory")
    exercise("clip", group="Optimizers & Schedules", order=2)
    exercise("decay", group="Optimizers & Schedules", order=1)
    _, tree = render()
    sections = tree.findall(".//section")
    assert [words(section.find("h2")) for section in sections] == [
        "Optimizers & Schedules",
        "Memory",
    ]
    assert sections[0].find("h2").get("id") == "optimizers-schedules"
    slugs = [[item.get("data-slug") for item in section.iter("li")] for section in sections]
    assert slugs == [["decay", "clip"], ["peak"]]


def test_each_exercise_says_what_it_is(exercise):
    exercise("clip", title="Clip it", tags="[numpy, low-precision]", level="hard")
    _, tree = render()
    item = tree.find(".//li")
    assert words(item) == "Clip it hard 15 min numpy low-precision"
    assert item.find("a").get("href") == "clip/index.md"
    assert item.attrib == {
        "data-slug": "clip",
        "data-difficulty": "hard",
        "data-tag": "numpy low-precision",
    }


def test_filters_offer_what_there_is(exercise):
    exercise("a", tags="[numpy, gradients]")
    exercise("b", tags="[gradients]", order=2)
    _, tree = render()
    offered = {
        select.get("name"): [option.get("value") for option in select]
        for select in tree.iter("select")
    }
    assert offered == {
        "tag": ["", "gradients", "numpy"],
        "difficulty": ["", "easy", "medium", "hard"],
        "state": ["", "open", "solved"],
    }


def test_what_needs_a_script_is_hidden_without_one(exercise):
    exercise("a")
    _, tree = render()
    [roadmap] = tree.findall("div")
    visible = [part.tag for part in roadmap if part.get("hidden") is None]
    assert visible == ["section"]


def test_title_is_text_and_no_markup(exercise):
    exercise("a", title="'*One* <b>two</b> `three` & [four](five) NaN'")
    html, tree = render("<!-- roadmap -->\n\n*[NaN]: not a number\n")
    assert words(tree.find(".//li/a")) == "*One* <b>two</b> `three` & [four](five) NaN"
    assert "<b>" not in html
    assert "<abbr" not in html


def test_page_can_show_the_placeholder(exercise):
    exercise("a")
    html, _ = render("```html\n<!-- roadmap -->\n```\n\n`<!-- roadmap -->`\n\n<!-- other -->\n")
    assert "data-slug" not in html


def test_fault_of_an_exercise_stops_the_page(exercise):
    exercise("a", level="simple")
    with pytest.raises(ExerciseError, match=r"a/index\.md: difficulty is 'simple'"):
        render()


def test_roadmap_loads_nothing_heavy():
    code = (
        "import sys, livepages.roadmap\n"
        "heavy = {'torch', 'numpy', 'gradstep', 'pytest'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
