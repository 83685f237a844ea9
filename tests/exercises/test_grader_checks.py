"""What a check asks for, what is compared how, and which message a learner reads."""

import numpy as np
import pytest
from grader_values import mismatch, show

from tests.exercises.grading import CHECK, DOUBLES, HEAD, IN_PLACE, first

UNTOUCHED = HEAD + CHECK.format("returns=np.array([2.0, 4.0])")
LISTS = """
import numpy as np
from grader import Check

FUNCTIONS = {"halve": ("arrays", "keep")}
IN_PLACE = ["arrays"]
CHECKS = [
    Check(
        "halves",
        args=lambda: ([np.ones(2), np.ones(1)], [np.zeros(2)]),
        after={"arrays": lambda arrays, keep: [a / 2 for a in arrays]},
        message="Write into the arrays.",
    )
]
"""


def test_check_shows_call_expected_got_and_largest_difference() -> None:
    test = first("def double(x): return 3 * x")
    assert test["status"] == "failed"
    assert test["got"] == "array([3., 6.])"
    assert test["difference"] == "2 at the result[1] (relative 0.5)"
    assert test["message"] == "The result differs. Double it."


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("None", "The result is not a NumPy array: it is None, so a `return` may be missing. "),
        ("[2.0, 4.0]", "The result is not a NumPy array: it is a list. "),
        ("(2 * x)[:, None]", "The result has shape (2, 1), not (2,). "),
        ("np.array(['a', 'b'])", "The result holds <U1 entries, not numbers. "),
        ("x * float('nan')", "The result differs. "),
    ],
)
def test_check_says_what_is_wrong_before_the_cure(result: str, text: str) -> None:
    test = first(f"import numpy as np\ndef double(x): return {result}")
    assert test["message"] == f"{text}Double it."


def test_check_sees_an_argument_changed_that_must_not_be() -> None:
    test = first("def double(x):\n    x *= 2\n    return x.copy()", UNTOUCHED)
    assert test["message"] == "x was changed, but it belongs to the caller. Double it."
    assert (test["expected"], test["got"]) == ("x = array([1., 2.])", "x = array([2., 4.])")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("for a in arrays: a /= 2", ""),
        ("for a in arrays: a[...] = a / 2", ""),
        ("for i in range(len(arrays)): arrays[i] /= 2", ""),
        ("for a in arrays: a = a / 2", "arrays was not changed at all"),
        ("arrays[:] = [a / 2 for a in arrays]", "arrays[0] was replaced, and the caller's own"),
        ("arrays[0] /= 2", "arrays[1] differs"),
        ("for a in arrays: a /= 2; a.dtype = np.int64", "arrays[0] differs"),
        ("for a in arrays: a /= 2; a.shape = (-1, 1)", "arrays[0] has shape (2, 1), not (2,)"),
        ("for a in [*arrays, *keep]: a /= 2", ""),  # 0 / 2 is 0: nothing changed
        ("for a in [*arrays, *keep]: a -= 0.5", "keep was changed, but it belongs to the caller"),
        ("for a in arrays: a /= 2\n    keep[0] = keep[0].copy()", "keep was changed"),
        ("for a in arrays: a /= 2\n    keep.append(1)", "keep was changed"),
        ("for a in arrays: a /= 2\n    keep.clear()", "keep was changed"),
        ("for a in arrays: a /= 2\n    keep[0] *= -1", "keep was changed"),  # -0.0 is not 0.0
    ],
)
def test_in_place_is_judged_by_the_callers_own_arrays(body: str, message: str) -> None:
    test = first(f"import numpy as np\ndef halve(arrays, keep):\n    {body}", LISTS)
    assert test["message"].startswith(message)
    assert test["status"] == ("failed" if message else "passed"), test


def test_in_place_keeps_the_dtype() -> None:
    checks = IN_PLACE.replace("[1.0, 2.0]", "[0, 0]")
    assert first("def double(x): x *= 2", checks)["status"] == "passed"
    test = first("def double(x): x.dtype = float", checks)
    assert test["message"] == "x was int64 (2,) and is now float64 (2,). Double it."


@pytest.mark.parametrize(
    ("asked", "result", "message"),
    [
        ("result_type=float", "2.0", ""),
        ("result_type=float", "np.float64(2)", "The result is a numpy.float64, not a float"),
        ("result_type=float", "2", "The result is an int, not a float"),
        ("result_dtype=np.float32", "x.astype('f4')", ""),
        ("result_dtype=np.float32", "x", "The result has dtype float64, not float32"),
        ("result_dtype='f4'", "[x.astype('f4'), x]", "The result[1] has dtype float64"),
        ("raises=ValueError", "int('x')", ""),
        ("raises=ValueError", "1", "Nothing was raised"),
        ("raises=ValueError", "1 / 0", "ZeroDivisionError: division by zero"),
        ("holds={'it is 2': lambda result, x: result == 2}", "2", ""),
        ("holds={'it is 2': lambda result, x: result == 2}", "3", "It does not hold that it is 2"),
        ("holds={'it is 2': lambda result, x: result == 2}", "x", "It does not hold that it is 2"),
        ("returns=3, rtol=0.1", "3.2", ""),
        ("returns=3, rtol=0.1", "3.4", "The result differs"),
        ("returns=0, atol=0.1", "np.array(0.05)", ""),
        ("returns=lambda x: x.sum()", "3", ""),
        ("returns=lambda x: 1 / (x - 1)", "1 / (x - 1)", ""),
    ],
)
def test_check_asks_for(asked: str, result: str, message: str) -> None:
    checks = HEAD + CHECK.format(asked)
    test = first(f"import numpy as np\ndef double(x): return {result}", checks)
    assert test["message"].startswith(message)
    assert (test["status"] == "passed") == (not message), test
    assert test["expected"]


@pytest.mark.parametrize(
    ("mistake", "result"),
    [
        ("returns=3.0", "3"),
        ("returns=lambda x: 3 * x", "x + x + x"),
        ("returns=0.3", "0.1 + 0.2"),  # known in spite of rounding, where equality is asked for
        ("when=lambda result, x: result is None", "None"),
        ("raises=ZeroDivisionError", "1 / 0"),
        ("returns=3.0, when=lambda result, x: True", "3"),
        ("after={'x': lambda x: -x}", "x.__imul__(-1)"),
    ],
)
def test_mistake_that_fits_gives_the_message(mistake: str, result: str) -> None:
    known = f"returns=2.0, mistakes=(Mistake('Not this.', returns=9), Mistake('Ah.', {mistake}))"
    checks = HEAD + CHECK.format(known)
    test = first(f"def double(x): return {result}", checks)
    assert test["message"].endswith("Ah.")
    assert "Double it." not in test["message"]
    assert "Ah." not in first("def double(x): return 4", checks)["message"]
    assert first("def double(x): return 2", checks)["status"] == "passed"


def test_run_shows_every_call_and_compares_what_it_gives() -> None:
    many = HEAD.replace('("x",)}', '("x",), "half": ("x",)}') + (
        'CHECKS = [Check("undo", run=lambda double, half: half(double(3)), returns=3, message="")]'
    )
    test = first("def double(x): return 2 * x\ndef half(x): return x / 2", many)
    assert (test["status"], test["call"]) == ("passed", "double(3)\nhalf(6)")
    test = first("def double(x): pass\ndef half(x): return x / 2", many)
    assert (test["status"], test["line"]) == ("error", 2)


def test_run_that_cannot_go_on_is_a_failure_of_the_learner() -> None:
    checks = HEAD + 'CHECKS = [Check("x", run=lambda f: f(1) + 1, returns=3, message="Return it.")]'
    test = first("def double(x): print(x)", checks)
    assert test["status"] == "failed"
    assert test["message"].endswith("Return it.")
    assert test["got"].startswith("TypeError(")


@pytest.mark.parametrize(
    ("expected", "got", "equal"),
    [
        (1.0, 1, True),
        (1, np.float16(1), True),
        (1, True, True),
        (True, 1, False),
        (True, np.True_, True),
        (float("nan"), np.nan, True),
        (float("inf"), np.inf, True),
        (float("inf"), 1e308, False),
        (1.0, float("inf"), False),
        (1.0, float("nan"), False),
        (1j, 1j, True),
        (None, None, True),
        (None, 0, False),
        ("a", "a", True),
        ("a", "b", False),
        ([1, 2], (1, 2), True),
        ([1, 2], [1], False),
        ([1, 2], np.array([1, 2]), False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": [1]}, {"a": [2]}, False),
        (np.zeros(0), np.zeros(0), True),
        (np.zeros((0, 3)), np.zeros(0), False),
        (np.array(3.0), np.float64(3.0), True),
    ],
)
def test_values_compare_by_what_they_mean(expected: object, got: object, equal: bool) -> None:
    assert (mismatch(expected, got) is None) == equal


def test_values_compare_within_their_tolerances() -> None:
    assert mismatch(100.0, 100.9, rtol=0.01) is None
    assert mismatch(100.0, 101.1, rtol=0.01) is not None
    assert mismatch(100.0, 101.1, rtol=0.01, atol=0.2) is None
    assert mismatch(float("inf"), 1.0, rtol=1.0) is not None
    assert mismatch(np.float32(1e38), np.float32(-1e38), rtol=1.0) is not None


def test_difference_names_place_and_size() -> None:
    found = mismatch({"a": [np.zeros(2), np.eye(2)]}, {"a": [np.zeros(2), np.ones((2, 2))]})
    assert found == ("the result['a'][1] differs", "1 at the result['a'][1][0, 1]")
    found = mismatch(np.array([1.0, 2.0]), np.array([np.nan, 3.0]))
    assert found == ("the result differs", "nan instead of 1 at the result[0]")


def test_show_is_short_for_anything() -> None:
    loop: list[object] = []
    loop.append(loop)
    assert show(np.zeros(10**6, np.float32)) == (
        "array([0., 0., 0., ..., 0., 0., 0.], shape=(1000000,), dtype=float32)"
    )
    assert show(np.array([4.0, 0.0])) == "array([4., 0.])"
    for value in (loop, list(range(10**5)), "x" * 10**6, {i: i for i in range(99)}, 10**9999):
        assert len(show(value)) < 200


def test_checks_without_a_solution_show_what_is_expected() -> None:
    test = first("def double(x): raise NotImplementedError", DOUBLES)
    assert test["expected"] == "array([2., 4.]) (exactly)"
    assert test["got"] == test["message"] == "NotImplementedError"
