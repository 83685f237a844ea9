"""The roadmap in a browser: ticks, progress, filters, and the file that keeps them."""

import json
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from served import Server

from livepages.exercises import load

PUBLISHED = "https://gradstep.github.io/gradstep/"
EXERCISES = load(Path(__file__).parents[2] / "docs")
SLUGS = [exercise.slug for exercise in EXERCISES]
TAG = EXERCISES[0].tags[0]
TAGGED = [exercise.slug for exercise in EXERCISES if TAG in exercise.tags]
SOLVE = """async (slugs) => {
  const { write } = await import("/gradstep/assets/exercises/storage.js");
  for (const slug of slugs) write(slug, { solved: true });
}"""


@pytest.fixture(scope="module")
def roadmap(site):
    """The address of the roadmap; it needs no Python."""
    with Server(site) as server:
        # instant navigation knows the site's pages by their published addresses
        sitemap = (site / "sitemap.xml").read_text()
        server.damaged["sitemap.xml"] = sitemap.replace(PUBLISHED, server.url).encode()
        yield f"{server.url}exercises/"


@pytest.fixture
def open_roadmap(browser, roadmap):
    """Open the roadmap in one reader's browser, in which nothing may fail."""
    faults = []
    with browser.new_context(reduced_motion="reduce") as context:
        context.on("console", lambda said: faults.append(said.text) if said.type == "error" else 0)
        context.on("weberror", lambda error: faults.append(error.error))

        def open_roadmap(query="", solved=()):
            page = context.new_page()
            page.goto(roadmap + query)
            page.locator(".roadmap[data-mounted]").wait_for()
            if solved:
                solve(page, solved)
            return page

        yield open_roadmap
    assert faults == []


def solve(page, slugs):
    page.evaluate(SOLVE, list(slugs))
    page.reload()
    page.locator(".roadmap[data-mounted]").wait_for()


def shown(page):
    items = page.locator(".roadmap-list > li:visible")
    return items.evaluate_all("items => items.map((item) => item.dataset.slug)")


def ticked(page):
    ticks = page.locator(".roadmap-list > li").filter(has=page.get_by_label("Solved:"))
    return ticks.evaluate_all("items => items.map((item) => item.dataset.slug)")


def choose_file(page, text):
    file = {"name": "p.json", "mimeType": "application/json", "buffer": text.encode()}
    page.get_by_label("Import a file").set_input_files(file)


def exported(page):
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    return Path(download.value.path()).read_text()


def test_roadmap_without_scripts_is_a_list_of_links(browser, roadmap):
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(roadmap)
        assert shown(page) == SLUGS
        assert page.locator(".roadmap :is(select, button, input):visible").count() == 0
        page.locator(".roadmap").get_by_role("link", name=EXERCISES[0].title).click()
        assert page.url == f"{roadmap}{SLUGS[0]}/"


def test_solved_exercises_have_a_tick_and_count(open_roadmap):
    page = open_roadmap(solved=[SLUGS[-1], "not-on-this-roadmap"])
    assert ticked(page) == [SLUGS[-1]]
    bar = page.get_by_role("progressbar", name="Exercises solved")
    assert bar.get_attribute("aria-valuenow") == "1"
    assert bar.get_attribute("aria-valuetext") == f"1 of {len(SLUGS)} solved"
    assert page.get_by_text(f"1 of {len(SLUGS)} solved").is_visible()


def test_finish_is_said_only_when_all_are_solved(open_roadmap):
    page = open_roadmap(solved=[*SLUGS[1:], "not-on-this-roadmap"])
    message = page.get_by_text(f"All {len(SLUGS)} exercises are solved.")
    assert message.is_hidden()
    solve(page, SLUGS)
    assert message.is_visible()


def test_filters_show_what_matches_and_say_how_many(open_roadmap, roadmap):
    page = open_roadmap(solved=TAGGED[:1])
    page.get_by_label("Tag").select_option(TAG)
    assert shown(page) == TAGGED
    page.get_by_label("State").select_option("open")
    assert shown(page) == TAGGED[1:]
    status = page.get_by_role("status").filter(has_text="match")
    assert status.inner_text() == f"{len(TAGGED) - 1} of {len(SLUGS)} exercises match"
    page.get_by_label("State").select_option("solved")
    assert shown(page) == TAGGED[:1]
    page.get_by_role("button", name="Show all").click()
    assert shown(page) == SLUGS
    assert page.url == roadmap


@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard"])
def test_filter_of_difficulty_hides_groups_without_a_match(open_roadmap, difficulty):
    page = open_roadmap()
    page.get_by_label("Difficulty").select_option(difficulty)
    matching = [exercise for exercise in EXERCISES if exercise.difficulty == difficulty]
    assert shown(page) == [exercise.slug for exercise in matching]
    groups = {exercise.group for exercise in matching}
    assert page.locator(".roadmap h2:visible").count() == len(groups)


def test_filters_stand_in_the_address(open_roadmap):
    page = open_roadmap()
    page.get_by_label("Tag").select_option(TAG)
    assert urlsplit(page.url).query == f"tag={TAG}"
    page.reload()
    page.locator(".roadmap[data-mounted]").wait_for()
    assert shown(page) == TAGGED


def test_unknown_filter_in_the_address_shows_all(open_roadmap):
    assert shown(open_roadmap("?tag=nothing&state=lost")) == SLUGS


def test_filters_survive_a_visit_to_an_exercise(open_roadmap):
    page = open_roadmap(f"?tag={TAG}")
    page.wait_for_load_state("networkidle")  # instant navigation has come
    page.evaluate("window.loadedOnce = true")
    page.locator(".roadmap-list a:visible").first.click()
    page.locator(".roadmap").wait_for(state="detached")
    page.evaluate(SOLVE, TAGGED[:1])
    page.go_back()
    page.locator(".roadmap[data-mounted]").wait_for()
    assert page.evaluate("window.loadedOnce")
    assert shown(page) == TAGGED
    assert ticked(page) == TAGGED[:1]


def test_other_tab_that_solves_one_is_heard(open_roadmap):
    page, other = open_roadmap(), open_roadmap()
    other.evaluate(SOLVE, SLUGS[:1])
    page.get_by_text(f"1 of {len(SLUGS)} solved").wait_for()
    assert ticked(page) == SLUGS[:1]


def test_exported_file_brings_the_ticks_back(open_roadmap):
    page = open_roadmap(solved=SLUGS[:1])
    text = exported(page)
    page.evaluate("localStorage.clear()")
    page = open_roadmap()
    assert ticked(page) == []
    choose_file(page, text)
    page.get_by_text("Imported 1 exercise.").wait_for()
    assert ticked(page) == SLUGS[:1]
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("as it was before the import").wait_for()
    assert ticked(page) == []


@pytest.mark.parametrize("damage", ["not JSON", "another file", "one bad entry"])
def test_bad_file_is_refused_with_a_message_and_changes_nothing(open_roadmap, damage):
    page = open_roadmap(solved=SLUGS[:1])
    before = exported(page)
    file = json.loads(before)
    file["exercises"] |= {"new": file["exercises"][SLUGS[0]], "worse": {"solved": 1}}
    text, said = {
        "not JSON": ("{", "This is not a file that was exported here"),
        "another file": ('{"a": 1}', "This is not a file that was exported here"),
        "one bad entry": (json.dumps(file), 'The entry "worse" of this file is damaged'),
    }[damage]
    choose_file(page, text)
    page.get_by_role("status").filter(has_text=said).wait_for()
    assert exported(page) == before


def test_unreadable_entry_is_reported_and_deleted_only_on_request(open_roadmap):
    page = open_roadmap()
    page.evaluate("slug => localStorage.setItem(`gradstep:exercise:${slug}`, '{mine')", SLUGS[0])
    page.reload()
    problem = page.get_by_text(f"What was saved of “{SLUGS[0]}” could not be read")
    problem.wait_for()
    page.get_by_text("Its text").click()
    assert page.get_by_text("{mine").is_visible()
    assert "{mine" in page.evaluate("Object.values(localStorage)")
    page.get_by_role("button", name="Delete it").click()
    problem.wait_for(state="detached")
    assert "{mine" not in page.evaluate("Object.values(localStorage)")


def test_roadmap_in_use_is_accessible_in_both_schemes(open_roadmap):
    package = find_spec("axe_playwright_python")
    if package is None:
        pytest.skip("needs axe-playwright-python, which brings axe-core")
    page = open_roadmap(f"?tag={TAG}", solved=SLUGS)
    choose_file(page, "{")
    page.get_by_text("This is not a file").wait_for()
    page.add_script_tag(path=Path(package.origin).with_name("axe.min.js"))
    for media, scheme in (("light", "default"), ("dark", "slate")):
        page.emulate_media(color_scheme=media)
        page.locator(f"body[data-md-color-scheme={scheme}]").wait_for()
        result = page.evaluate("axe.run('.roadmap')")
        assert result["passes"]
        assert [(broken["id"], broken["nodes"][0]["html"]) for broken in result["violations"]] == []
