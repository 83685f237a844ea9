"""Whatever an imported file or a saved entry holds: it is taken whole, or nothing is lost."""

import json

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

TAKE = """async ([saved, text]) => {
  localStorage.clear();
  for (const [key, value] of Object.entries(saved)) localStorage.setItem(key, value);
  const storage = await import("{address}");
  let error = null;
  let imported = null;
  try { imported = storage.importAll(text).imported; }
  catch (caught) { error = { name: caught.name, message: caught.message }; }
  return { imported, error, after: { ...localStorage } };
}"""

READ = """async ([slug, text]) => {
  localStorage.clear();
  localStorage.setItem(`gradstep:exercise:${slug}`, text);
  const storage = await import("{address}");
  const entry = storage.read(slug);
  const problems = storage.problems();
  const kept = Object.values({ ...localStorage });
  storage.write(slug, { code: "mine" });
  const { code } = storage.read(slug);
  return { entry, problems, kept, code, solved: storage.solvedSlugs().size };
}"""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
ENTRY = st.fixed_dictionaries(
    {
        "version": st.just(1),
        "code": st.none() | st.text(max_size=20),
        "attempts": st.integers(0, 9),
        "hints": st.integers(0, 9),
        "solved": st.booleans(),
    },
    optional={"previous": st.text(max_size=8)},
)
SLUGS = st.sampled_from(["clip-by-global-norm", "best-segment", "a", "0"])


@st.composite
def spoiled(draw, whole):
    """A right value, or one in which a field is missing, strange or new."""
    value = dict(draw(whole))
    for name in draw(st.lists(st.sampled_from([*value, "more"]), max_size=2)):
        if draw(st.booleans()):
            value.pop(name, None)
        else:
            value[name] = draw(JSON)
    return value


FILE = st.fixed_dictionaries(
    {
        "format": st.just("gradstep exercises"),
        "version": st.just(1),
        "exercises": st.dictionaries(
            SLUGS | st.text(max_size=5), ENTRY | spoiled(ENTRY), max_size=3
        )
        | st.dictionaries(SLUGS, ENTRY, max_size=3),
    }
)
TEXT = (
    st.text(max_size=30)
    | JSON.map(json.dumps)
    | FILE.map(json.dumps)
    | spoiled(FILE).map(json.dumps)
)
fuzzed = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def evaluate(new_context, server):
    """Run a script on a page of the site."""
    with new_context() as context:
        page = context.new_page()
        page.goto(server.url)
        address = f"{server.url}assets/exercises/storage.js"
        yield lambda script, argument: page.evaluate(script.replace("{address}", address), argument)


@fuzzed
@given(
    st.dictionaries(SLUGS.map("gradstep:exercise:{}".format), ENTRY.map(json.dumps), max_size=2),
    TEXT,
)
@example({}, '{"format": "gradstep exercises", "version": 1, "exercises": null}')
@example({}, '{"format": "gradstep exercises", "version": 1, "exercises": []}')
def test_an_imported_file_is_taken_whole_or_refused_and_nothing_changes(evaluate, saved, text):
    found = evaluate(TAKE, [saved, text])
    event("taken" if found["error"] is None else "refused")
    if found["error"] is not None:
        assert found["error"]["name"] == "Error"  # one of ours, with a sentence for the reader
        assert found["error"]["message"].endswith(".")
        assert found["after"] == saved
        return
    given_entries = json.loads(text)["exercises"]
    assert isinstance(given_entries, dict)
    assert found["imported"] == len(given_entries)
    after = {key: json.loads(value) for key, value in found["after"].items()}
    expected = {key: json.loads(value) for key, value in saved.items()}
    assert after == expected | {f"gradstep:exercise:{k}": v for k, v in given_entries.items()}


@fuzzed
@given(SLUGS, st.text(max_size=30) | JSON.map(json.dumps) | spoiled(ENTRY).map(json.dumps))
def test_a_saved_entry_is_read_or_kept_aside_and_the_exercise_goes_on(evaluate, slug, text):
    found = evaluate(READ, [slug, text])
    event("read" if found["entry"] is not None else "kept aside")
    assert text in found["kept"]
    assert (found["entry"] is None) == bool(found["problems"])
    assert found["code"] == "mine"
    assert found["solved"] == bool(found["entry"] and found["entry"]["solved"])
