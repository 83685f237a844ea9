"""Work per element in Python is counted: no clock, no banned word."""

import sys
import textwrap

import grader_loops
import numpy as np
import pytest
from grader_loops import CountingArray, counting

from tests.exercises.grading import grade

CHECKS = """
import numpy as np
from grader import NoElementLoop

FUNCTIONS = {"norm": ("arrays",)}
CHECKS = [
    NoElementLoop(
        "no loop",
        args=lambda n: ([np.linspace(-1, 1, n), np.ones((n, 2)), np.zeros((2, n)), np.ones(())],),
        message="Use NumPy.",
    )
]
"""
HEAD = "import functools, itertools, math\nimport numpy as np\n"
WHOLE = {
    "sum": "return math.sqrt(sum(np.sum(a * a) for a in arrays))",
    "list": "return np.sqrt(np.sum([np.sum(a**2) for a in arrays]))",
    "for": "total = 0.0\nfor a in arrays:\n    total += float((a**2).sum())\nreturn total**0.5",
    "while": "i = t = 0\nwhile i < len(arrays):\n    t += np.vdot(arrays[i], arrays[i])\n"
    "    i += 1\nreturn float(t) ** 0.5",
    "concatenate": "return np.linalg.norm(np.concatenate([a.ravel() for a in arrays]))",
    "map": "return math.hypot(*map(np.linalg.norm, map(np.ravel, arrays)))",
    "einsum": "return math.sqrt(sum(np.einsum('i,i->', a.ravel(), a.ravel()) for a in arrays))",
    "slices": "for a in arrays:\n    a[...] = a * 2\n    a.ravel()[:] = 0\nreturn 0.0",
    "rows": "return sum(float(np.sum(row)) for row in arrays[2])",
    "item": "return sum(np.sum(a).item() for a in arrays)",
}
BY_ELEMENT = {
    "for": "t = 0.0\nfor a in arrays:\n    for x in a.ravel():\n        t += x * x\nreturn t**0.5",
    "while": "t, i, a = 0.0, 0, arrays[0]\nwhile i < a.size:\n    t += a[i]\n    i += 1\nreturn t",
    "generator": "return math.sqrt(sum(x * x for a in arrays for x in a.flat))",
    "sum": "return sum(arrays[0])",
    "fsum": "return math.fsum(sum([(a * a).ravel().tolist() for a in arrays], []))",
    "map": "return sum(map(abs, arrays[0]))",
    "reduce": "return functools.reduce(max, arrays[0])",
    "vectorize": "return np.sum(np.vectorize(lambda x: x * x)(arrays[0]))",
    "index": "return sum(arrays[1][i, 0] for i in range(len(arrays[1])))",
    "set": "for i in range(len(arrays[0])):\n    arrays[0][i] *= 2\nreturn 0.0",
    "item": "return sum(map(arrays[0].item, range(arrays[0].size)))",
    "list": "return max(list(arrays[0]))",
    "rows": "return sum(float(np.sum(row)) for row in arrays[1])",
    "map rows": "return sum(map(np.sum, arrays[1]))",
    "map get": "return sum(map(arrays[0].__getitem__, range(len(arrays[0]))))",
    "map set": "return len([*map(arrays[0].__setitem__, range(arrays[0].size), range(9999))])",
    "recursion": "def add(a): return a[0] if len(a) == 1 else add(a[:1]) + add(a[1:])\n"
    "return sum(add(arrays[0][i : i + 50]) for i in range(0, arrays[0].size, 50))",
    "fromiter": "return np.fromiter((x * x for x in arrays[0]), float).sum()",
}


def status(body: str) -> str:
    result = grade(HEAD + "def norm(arrays):\n" + textwrap.indent(body, "    "), CHECKS)
    (test,) = result["tests"]
    assert test["status"] in {"passed", "failed"}, test["traceback"]
    assert test["expected"]
    assert "bytecodes" in test["got"]
    return test["status"]


@pytest.mark.parametrize("body", WHOLE.values(), ids=WHOLE)
def test_loops_over_whole_arrays_are_legal(body: str) -> None:
    assert status(body) == "passed"


@pytest.mark.parametrize("body", BY_ELEMENT.values(), ids=BY_ELEMENT)
def test_loops_over_elements_are_found(body: str) -> None:
    assert status(body) == "failed"


def test_loops_count_the_same_in_every_run() -> None:
    source = HEAD + "def norm(arrays): return sum(np.sum(a * a) for a in arrays)"
    assert grade(source, CHECKS) == grade(source, CHECKS)


def test_loops_counting_leaves_no_trace() -> None:
    before = sys.gettrace()
    status(WHOLE["sum"])
    assert sys.gettrace() is before
    if sys.version_info >= (3, 12):
        assert [sys.monitoring.get_tool(i) for i in range(6)].count("grader") == 0


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with Python 3.12")
def test_loops_counted_by_monitoring_and_by_tracing_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    source = HEAD + "def norm(arrays): return sum(x * x for a in arrays for x in a.flat)"
    monitored = grade(source, CHECKS)["tests"][0]
    monkeypatch.setattr(grader_loops, "_monitored", grader_loops._traced)
    traced = grade(source, CHECKS)["tests"][0]
    assert monitored["status"] == traced["status"] == "failed"


def test_counting_array_shares_the_memory_of_its_array() -> None:
    args = ([np.zeros(2)], {"a": (np.ones(1), 3)}, "text")
    watched = counting(args)
    watched[0][0] += 5
    assert isinstance(watched[0][0], CountingArray)
    assert args[0][0].tolist() == [5.0, 5.0]
    assert watched[1]["a"][1] == 3
    assert watched[2] == "text"
