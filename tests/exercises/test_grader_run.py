"""The grader outlives whatever a learner writes, and leaves the interpreter as it was."""

import builtins
import json
import random
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import grader_learner
import numpy as np
import pytest

from tests.exercises.grading import ANYTHING, CHECK, HEAD, IN_PLACE, first, grade

RIGHT = "def double(x): return 2 * x"
KEYS = {
    *("name", "status", "call", "expected", "got", "difference"),
    *("message", "traceback", "line", "output", "dropped"),
}


def test_grade_gives_the_agreed_fields() -> None:
    result = grade(RIGHT)
    assert result["status"] == "passed"
    assert result["tests"][0].keys() == KEYS
    assert json.loads(json.dumps(result)) == result
    assert result["tests"][0]["call"] == "double(array([1., 2.]))"
    assert result["tests"][0]["expected"] == "array([2., 4.]) (exactly)"


def test_grade_reports_each_test_as_it_ends() -> None:
    seen = []
    result = grade(RIGHT, on_test=lambda test: seen.append(test["name"]))
    assert seen == [test["name"] for test in result["tests"]] == ["doubles"]


def test_error_has_the_line_and_begins_at_the_first_frame_of_the_learner() -> None:
    source = """
        def helper(x):
            return x[5]

        def double(x):
            return helper(x)
    """
    test = first(source)
    assert (test["status"], test["line"]) == ("error", 3)
    assert test["message"].startswith("IndexError: index 5 is out of bounds")
    frames = [line.strip() for line in test["traceback"].splitlines() if "File" in line]
    assert frames == [
        'File "solution.py", line 6, in double',
        'File "solution.py", line 3, in helper',
    ]
    assert "return x[5]" in test["traceback"]
    assert "grader_" not in test["traceback"]


@pytest.mark.parametrize("link", ["", " from error"])
def test_error_trims_causes_and_contexts_alike(link: str) -> None:
    source = f"""
        def double(x):
            try:
                return np.square(x)
            except NameError as error:
                raise ValueError("second"){link}
    """
    test = first(source)
    assert test["line"] == 6
    assert "NameError" in test["traceback"]
    assert "grader_" not in test["traceback"]
    assert test["traceback"].count('File "solution.py"') == 2


def test_error_shows_no_frame_of_the_grader_where_its_array_raised() -> None:
    check = 'NoElementLoop("x", args=lambda n: (np.ones(n),), message="")'
    source = """
        def double(x):
            try:
                return x["a"]
            except IndexError:
                raise ValueError("second")
    """
    trace = first(source, f"{HEAD}CHECKS = [{check}]")["traceback"]
    assert "IndexError" in trace
    assert "grader_" not in trace


def test_error_names_recursion_in_short() -> None:
    test = first("def double(x):\n    return double(x)")
    assert (test["status"], test["line"]) == ("error", 2)
    assert test["message"].startswith("RecursionError")
    assert len(test["traceback"]) < 2000


@pytest.mark.parametrize("leave", ["import sys; sys.exit(3)", "exit()", "raise SystemExit"])
def test_error_tells_a_program_that_ends_itself_to_return(leave: str) -> None:
    test = first(f"def double(x):\n    {leave}")
    assert test["status"] == "error"
    assert "return a value instead" in test["message"]
    assert test["line"] == 2


def test_error_may_be_of_any_class() -> None:
    test = first(
        "class Odd(BaseException):\n    def __str__(self): 1 / 0\ndef double(x): raise Odd"
    )
    assert (test["status"], test["line"]) == ("error", 3)
    assert "Odd" in test["message"]


@pytest.mark.parametrize(
    ("source", "line", "part"),
    [
        ("def double(x)\n    return x", 1, "SyntaxError"),
        ("def double(x):\nreturn x", 2, "IndentationError"),
        ("import numpy\nnumpy.nothing", 2, "AttributeError"),
        ("raise SystemExit", 1, "return a value instead"),
        ("def twice(x): pass", None, "must define double(x), but it defines twice"),
        ("", None, "but it defines no function"),
        ("double = 3", None, "must define double(x)"),
        ("\ndef double(x, y): pass", 2, "is called as double(x), but is defined as double(x, y)"),
        ("def double(): pass", 1, "it must take 1 arguments"),
        ("def double(*, x): pass", 1, "is called as double(x)"),
        ("x = '\ud800'", None, ""),
        ("def double(x): return '\0'", None, ""),
    ],
)
def test_load_error_is_told_from_a_failed_test(source: str, line: int | None, part: str) -> None:
    result = grade(source)
    assert (result["status"], result["tests"]) == ("error", [])
    assert part in result["error"]["message"]
    if line:
        assert result["error"]["line"] == line
    assert "grader_" not in result["error"]["traceback"]


def test_load_error_keeps_what_was_printed() -> None:
    assert grade("print('here')\n1 / 0")["output"] == "here\n"


def test_output_is_kept_per_test_and_not_shown_elsewhere(capsys: pytest.CaptureFixture) -> None:
    source = "import sys\ndef double(x):\n    print('out'); print('err', file=sys.stderr)"
    assert first(source)["output"] == "out\nerr\n"
    assert capsys.readouterr() == ("", "")


def test_output_is_cut_and_what_was_dropped_is_counted() -> None:
    heard = []
    source = "def double(x):\n    for _ in range(1000): print('x' * 999)\n    return 2 * x"
    result = grade(source, on_output=heard.append)
    test = result["tests"][0]
    assert result["status"] == "passed"
    assert len(test["output"]) == 64 * 1024 == sum(map(len, heard))
    assert test["dropped"] == 1_000_000 - 64 * 1024


def test_output_shows_warnings_with_their_line() -> None:
    test = first("import numpy as np\ndef double(x):\n    return np.float32(1e30) ** 2 + 2 * x")
    assert test["output"] == "RuntimeWarning: overflow encountered in scalar power (line 3)\n"


@pytest.mark.parametrize(
    "odd",
    [
        "np.zeros(10**7)",
        "np.broadcast_to(1.0, (10**6, 10**6))",
        "np.array([None, x], object)",
        "np.zeros(2, [('a', 'f8')])",
        "[x] * 10**6",
        "loop",
        "{'self': loop}",
        "Broken()",
        "[Broken()]",
        "10 ** 10_000",
        "'\\ud800' * 10**6",
        "double",
        "(y for y in x)",
        "Exit()",
        "Lies()",
        "float('nan')",
    ],
)
def test_result_may_be_any_object(odd: str) -> None:
    source = f"""
        import numpy as np
        loop = []
        loop.append(loop)
        class Broken:
            def __repr__(self): raise ValueError("no repr")
            def __eq__(self, other): raise ValueError("no eq")
        class Exit:
            def __repr__(self): raise SystemExit
        class Lies:
            __class__ = np.ndarray
        def double(x):
            return {odd}
    """
    result = grade(source)
    test = result["tests"][0]
    assert test["status"] in {"failed", "error"}
    assert test["message"]
    assert len(json.dumps(result)) < 10_000


def test_result_whose_repr_raises_is_shown_by_its_class() -> None:
    test = first("class Odd:\n    def __repr__(self): 1 / 0\ndef double(x): return Odd()")
    assert test["status"] == "failed"
    assert test["got"] == "<Odd, whose repr raises ZeroDivisionError>"


@pytest.mark.parametrize(
    "spoil",
    [
        "np.seterr(all='raise')",
        "np.set_printoptions(precision=1)",
        "np.random.seed(1)",
        "random.seed(1)",
        "sys.setrecursionlimit(10_000)",
        "sys.stdout = None",
        "sys.stdout.close()",
        "sys.stdin = None",
        "sys.settrace(print)",
        "warnings.simplefilter('error')",
        "signal.signal(signal.SIGINT, signal.SIG_IGN)",
        "np.sum = np.abs = None",
        "builtins.len = builtins.isinstance = builtins.next = builtins.repr = None",
        "del builtins.print",
        "globals().clear()",
    ],
)
def test_program_cannot_change_the_interpreter_for_others(spoil: str) -> None:
    source = f"""
        import builtins, random, signal, sys, warnings
        import numpy as np
        def double(x):
            y = 2 * x
            {spoil}
            return y
    """
    before = _state()
    test = first(source)
    assert _state() == before
    assert test["status"] == "passed", test


def _state() -> list[object]:
    numpy = [np.geterr(), np.get_printoptions(), np.random.get_state()[1].tolist()]
    system = [sys.getrecursionlimit(), sys.stdout, sys.stdin, sys.gettrace(), *warnings.filters]
    names = [dict(vars(builtins)), np.sum, np.abs, signal.getsignal(signal.SIGINT)]
    return [*numpy, *system, *names, random.getstate()]


@pytest.mark.parametrize(
    "spoil", ["x.resize(0, refcheck=False)", "x.shape = (2, 1)", "x.flags.writeable = False"]
)
def test_program_cannot_break_the_grader_by_its_argument(spoil: str) -> None:
    test = first(f"def double(x):\n    {spoil}\n    return x", IN_PLACE)
    assert test["status"] == "failed"
    assert test["message"]


def test_each_check_gets_arguments_of_its_own() -> None:
    checks = IN_PLACE + "\nCHECKS *= 2"
    result = grade("def double(x): x *= 2", checks)
    assert [test["status"] for test in result["tests"]] == ["passed", "passed"]


@pytest.fixture
def soon() -> Iterator[threading.Timer]:
    """SIGINT in a moment, as the browser sends it when the time is up."""
    main = threading.main_thread().ident
    assert main
    timer = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    yield timer
    timer.cancel()
    timer.join()


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "while True:\n        try: sum(x)\n        except Exception: pass",
        "while True: print('x')",
        "while True: x = np.sqrt(np.abs(x))",
    ],
)
def test_time_limit_stops_an_endless_loop_in_its_line(soon: threading.Timer, body: str) -> None:
    checks = ANYTHING + "\nCHECKS *= 3"
    result = grade(f"import numpy as np\ndef double(x):\n    {body}", checks)
    assert [test["status"] for test in result["tests"]] == ["stopped"]
    test = result["tests"][0]
    assert result["status"] == "failed"
    assert test["line"] in {3, 4, 5}
    assert f"time limit in line {test['line']}" in test["message"]
    assert 'File "solution.py"' in test["traceback"]
    assert "grader_" not in test["traceback"]
    assert grade(RIGHT)["status"] == "passed"


@pytest.mark.parametrize(
    ("caught", "output"), [("Exception", ""), ("BaseException", "swallowed\n")]
)
def test_time_limit_is_noticed_where_a_program_swallows_it(caught: str, output: str) -> None:
    source = f"""
        import signal
        def double(x):
            try:
                signal.raise_signal(signal.SIGINT)
                len([])
            except {caught}:
                print("swallowed")
            return 2 * x
    """
    test = first(source)
    assert test["status"] == "stopped"
    assert test["line"] in {5, 6}
    assert test["output"] == output


def test_time_limit_stops_a_program_that_does_not_load(soon: threading.Timer) -> None:
    result = grade("while True: pass")
    assert result["status"] == "error"
    assert result["error"]["line"] == 1
    assert "time limit" in result["error"]["message"]


def test_time_limit_stops_a_repr_of_the_learner(soon: threading.Timer) -> None:
    source = """
        class Endless:
            def __repr__(self):
                while True: pass
        def double(x): return Endless()
    """
    assert first(source)["line"] == 4


def test_time_limit_leaves_the_grader_itself_alone() -> None:
    checks = "import signal\nsignal.raise_signal(signal.SIGINT)\n" + ANYTHING
    with pytest.raises(KeyboardInterrupt):
        grade(RIGHT, checks)  # before any code of the learner: the caller's own handler
    within = HEAD + CHECK.format("holds={'x': lambda r, x: signal.raise_signal(signal.SIGINT)}")
    result = grade(RIGHT, "import signal\n" + within)
    assert result["tests"][0]["status"] == "stopped"
    assert result["tests"][0]["line"] is None


def test_grader_files_are_those_that_the_page_loads() -> None:
    folder = Path(grader_learner.__file__).parent
    worker = (folder / "worker.js").read_text("utf-8")
    listed = worker.split("GRADER = [")[1].split("]")[0]
    names = {name.strip().strip('"') for name in listed.split(",") if name.strip()}
    assert names == {path.stem for path in folder.glob("grader*.py")}
