"""The built site with Python placed in it, served below a path, and a reader's browser."""

import os
import shutil
from pathlib import Path

import pytest
from exercise import SOLUTION, Exercise
from served import Server

from livepages import runtime

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site_with_python(site, tmp_path_factory):
    """A copy of the site that has Pyodide and NumPy's wheel."""
    folder = tmp_path_factory.mktemp("with_python") / "site"
    shutil.copytree(site, folder)
    wheels = os.environ.get("GRADSTEP_WHEELS")
    try:
        runtime.place(folder, ROOT / ".venv/runtime", Path(wheels) if wheels else None)
    except runtime.UnavailableError as error:
        pytest.skip(f"needs Pyodide from npm and NumPy's wheel: {error}")
    return folder


@pytest.fixture(scope="session")
def server(site_with_python):
    with Server(site_with_python) as server:
        yield server


@pytest.fixture(scope="session")
def new_context(browser, server):
    """Make a reader's browser with an empty cache and storage; other hosts are out of reach."""

    def new_context(**options):
        context = browser.new_context(reduced_motion="reduce", **options)
        context.foreign = []

        def refuse(route):
            context.foreign.append(route.request.url)
            route.abort()

        context.route(lambda url: not url.startswith(server.url), refuse)
        return context

    return new_context


@pytest.fixture
def context(new_context):
    with new_context() as context:
        yield context


@pytest.fixture
def exercise(context, server):
    """The exercise, just opened."""
    return Exercise(context, server.url)


@pytest.fixture(scope="session")
def warm_exercise(new_context, server):
    """The exercise with Python ready, for tests of single runs in any order."""
    with new_context() as context:
        exercise = Exercise(context, server.url)
        exercise.run(SOLUTION)
        yield exercise
