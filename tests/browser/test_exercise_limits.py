"""What ends a run: the time limit, Stop, Python that does not load; and what runs after it."""

import json
import re

import pytest
from exercise import ENDLESS, SOLUTION, Exercise
from served import Server

ENDLESS_IMPORT = "while True:\n    pass\n"
SLEEPS = """\
import time

def clip_grad_norm(grads, max_norm):
    print("before the sleep")
    time.sleep(60)
"""
LARGE = """\
import numpy as np

def clip_grad_norm(grads, max_norm):
    np.empty(600 * 2**20, np.uint8)
    return 5.0
"""
EXITS = """\
import os

def clip_grad_norm(grads, max_norm):
    os._exit(1)
"""
CDN = "https://cdn.jsdelivr.net/pyodide/"


def test_endless_loop_ends_at_its_line_and_python_lives_on(warm_exercise):
    page = warm_exercise.page
    page.evaluate("window.before = pythons[0].worker")
    verdict = warm_exercise.run(ENDLESS)
    assert verdict == "Time limit: your code ran for 5 s and was interrupted."
    stopped = page.locator(".exercise-test.stopped")
    assert "Stopped by the time limit in line " in stopped.inner_text()
    assert page.locator(".cm-error-line").inner_text().strip() in ("while True:", "pass")
    assert warm_exercise.run(SOLUTION).startswith("Solved: ")
    assert page.evaluate("window.before === pythons[0].worker")


def test_endless_loop_outside_of_functions_is_a_time_limit_too(warm_exercise):
    assert warm_exercise.run(ENDLESS_IMPORT).startswith("Time limit: ")
    assert warm_exercise.run(SOLUTION).startswith("Solved: ")


def test_stop_ends_a_sleep_and_the_spare_takes_over(warm_exercise):
    exercise = warm_exercise
    exercise.run(SOLUTION)
    exercise.wait_for_spare()
    exercise.page.evaluate("window.spare = pythons[1].worker")
    exercise.start(SLEEPS)
    exercise.page.get_by_text("before the sleep", exact=True).wait_for()
    exercise.find("stop").click()
    assert exercise.verdict() == "Stopped, as you asked. Your code is as it was."
    assert "before the sleep" in exercise.find("details").inner_text()
    assert exercise.run(SOLUTION).startswith("Solved: ")
    assert exercise.page.evaluate("window.spare === pythons[0].worker")


def test_sleep_that_ignores_the_limit_is_ended(warm_exercise):
    verdict = warm_exercise.run(SLEEPS)
    assert verdict.startswith("Time limit: your code did not react for 10 s")
    assert warm_exercise.run(SOLUTION).startswith("Solved: ")


def test_python_that_grew_large_is_replaced(warm_exercise):
    page = warm_exercise.page
    warm_exercise.run(SOLUTION)
    warm_exercise.wait_for_spare()
    page.evaluate("window.large = pythons[0].worker")
    warm_exercise.run(LARGE)
    page.wait_for_function("window.large !== pythons[0].worker")
    assert warm_exercise.run(SOLUTION).startswith("Solved: ")


def test_program_that_takes_python_down_is_told(warm_exercise):
    assert warm_exercise.run(EXITS).startswith("Error: Python itself ended on your code")
    assert warm_exercise.run(SOLUTION).startswith("Solved: ")


def test_loading_tells_its_share_and_can_be_stopped(exercise):
    exercise.find("run").click()
    exercise.page.wait_for_function(
        r"/^[1-9]\d? %$/.test(document.querySelector('.exercise-share').textContent)"
    )
    exercise.find("stop").click()
    assert exercise.verdict().startswith("Stopped")
    exercise.wait_for_state("idle")
    assert exercise.find("share").inner_text() == ""
    assert exercise.page.evaluate("pythons.length") == 0


def test_share_of_loading_is_of_the_files_that_come(site_with_python):
    fetched = [
        file.stat().st_size
        for file in (site_with_python / "assets/pyodide").iterdir()
        if file.suffix in (".wasm", ".zip", ".whl")
    ]
    version = (site_with_python / "assets/exercises/version.js").read_text()
    told = re.search(r"RUNTIME_BYTES = ([\d_]+)", version)
    assert sum(fetched) == pytest.approx(int(told[1].replace("_", "")), rel=0.01)


def test_wheel_with_a_wrong_hash_is_told_and_retry_loads_it(context, site_with_python):
    with Server(site_with_python) as server:
        lock = json.loads((site_with_python / "assets/pyodide/pyodide-lock.json").read_text())
        server.damaged[lock["packages"]["numpy"]["file_name"]] = b"not the wheel"
        context.unroute_all()
        exercise = Exercise(context, server.url)
        assert exercise.run(SOLUTION) == "Python could not be loaded. Your code is as it was."
        assert "numpy-2.0.2" in exercise.find("details").inner_text()
        exercise.wait_for_state("failed")
        server.damaged.clear()
        exercise.page.get_by_role("button", name="Retry").click()
        exercise.find("tick").wait_for()


def test_run_needs_no_network_once_loaded(warm_exercise, server):
    exercise = warm_exercise
    exercise.run(SOLUTION)
    exercise.wait_for_spare()
    exercise.page.context.set_offline(True)
    try:
        del server.asked[:]
        assert exercise.run(SOLUTION).startswith("Solved: ")
        exercise.start(SLEEPS)
        exercise.page.get_by_text("before the sleep", exact=True).wait_for()
        exercise.find("stop").click()
        exercise.verdict()
        assert exercise.run(SOLUTION).startswith("Solved: ")
        assert server.asked == []
    finally:
        exercise.page.context.set_offline(False)


def test_site_without_python_asks_its_makers(context, site):
    context.unroute_all()
    asked = []

    def refuse(route):
        asked.append(route.request.url)
        route.abort()

    context.route(f"{CDN}**", refuse)
    with Server(site) as server:
        exercise = Exercise(context, server.url)
        assert exercise.run(SOLUTION).startswith("Python could not be loaded.")
    assert set(asked) == {f"{CDN}v0.27.7/full/pyodide.mjs"}
