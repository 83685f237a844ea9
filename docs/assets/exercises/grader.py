"""Grades an exercise: runs its checks.py against what a learner wrote, in CPython and Pyodide.

A checks.py says which `FUNCTIONS` a solution must define, which of their parameters they change
`IN_PLACE`, and lists its `CHECKS`. The arguments of a call are made anew for each use, by a
function, so that no call can spoil those of another.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from grader_judge import UNSET
from grader_learner import Learner, Raised, TimeLimit, same_chance
from grader_run import Run, load_error


@dataclasses.dataclass(frozen=True)
class Mistake:
    """A typical mistake: the message for an outcome that has every property given here.

    Args:
        message: what was done wrong and how to do it right.
        returns: the wrong result, or a function of the arguments that gives it.
        after: the wrong contents of arguments after the call, by parameter.
        raises: the error that this mistake ends in.
        when: a function of the result and the arguments after the call.
    """

    message: str
    _: dataclasses.KW_ONLY
    returns: Any = UNSET
    after: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    raises: type[BaseException] | None = None
    when: Callable[..., bool] | None = None


@dataclasses.dataclass(frozen=True)
class Check:
    """One test: a call, and what must come of it.

    Args:
        name: the requirement, as the learner reads it.
        message: what to do about a failure that no mistake explains.
        args: makes the arguments, a tuple.
        run: instead of `args`: a function of the learner's functions, for several calls.
        function: which of `FUNCTIONS` is called; the first unless said.
        returns: the right result, or a function of fresh arguments that gives it.
        result_type: the exact type of the result.
        result_dtype: the dtype of every array in the result.
        after: the right contents of arguments after the call, by parameter: values, or functions
            of fresh arguments. Whatever is not `IN_PLACE` must stay as it is.
        holds: claims about the outcome, each with a function of the result and the arguments.
        raises: the error that the call must end in.
        rtol: relative tolerance; with `atol` 0 as well, equal to the bit.
        atol: absolute tolerance.
        mistakes: what may have gone wrong; the first that fits is reported.
    """

    name: str
    _: dataclasses.KW_ONLY
    message: str
    args: Callable[[], tuple[Any, ...]] | None = None
    run: Callable[..., Any] | None = None
    function: str = ""
    returns: Any = UNSET
    result_type: type | None = None
    result_dtype: Any = None
    after: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    holds: Mapping[str, Callable[..., bool]] = dataclasses.field(default_factory=dict)
    raises: type[BaseException] | None = None
    rtol: float = 0.0
    atol: float = 0.0
    mistakes: tuple[Mistake, ...] = ()


@dataclasses.dataclass(frozen=True)
class NoElementLoop:
    """No Python work per array element, counted at two sizes.

    Args:
        name: the requirement, as the learner reads it.
        message: what to do instead of the loop.
        args: makes the arguments with about `n` elements; the lists in them keep their length.
        function: which of `FUNCTIONS` is called; the first unless said.
        sizes: the two `n`.
    """

    name: str
    _: dataclasses.KW_ONLY
    message: str
    args: Callable[[int], tuple[Any, ...]]
    function: str = ""
    sizes: tuple[int, int] = (100, 1000)


def grade(
    source: str,
    checks: str,
    on_test: Callable[[dict[str, Any]], object] | None = None,
    on_output: Callable[[str], object] | None = None,
) -> dict[str, Any]:
    """Grade `source`, the text of solution.py, by `checks`, the text of checks.py.

    `on_test` gets the result of each test and `on_output` each printed text as they come. SIGINT
    while the learner's code runs is the time limit.
    """
    namespace: dict[str, Any] = {"__name__": "checks"}
    exec(compile(checks, "checks.py", "exec", dont_inherit=True), namespace)
    parameters = {name: tuple(names) for name, names in namespace["FUNCTIONS"].items()}
    learner = Learner(source, on_output)
    with learner.interruptible(), same_chance():
        try:
            functions = learner.load(parameters)
        except (Raised, TimeLimit) as stop:
            error = load_error(learner, stop)
            return {"status": "error", "error": error, "tests": [], **learner.output.take()}
        loaded = learner.output.take()
        tests: list[dict[str, Any]] = []
        for check in namespace["CHECKS"]:
            run = Run(learner, functions, parameters, namespace.get("IN_PLACE", ()))
            tests.append(run.report(check))
            if on_test:
                on_test(tests[-1])
            if tests[-1]["status"] == "stopped":
                break
    passed = all(test["status"] == "passed" for test in tests)
    return {"status": "passed" if passed else "failed", "error": None, "tests": tests, **loaded}
