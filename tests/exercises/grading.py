"""What the tests of the grader share: one small exercise, graded."""

import textwrap
from typing import Any

import grader

HEAD = """
import numpy as np
from grader import Check, Mistake, NoElementLoop

FUNCTIONS = {"double": ("x",)}
"""
CHECK = (
    'CHECKS = [Check("doubles", args=lambda: (np.array([1.0, 2.0]),), message="Double it.", {})]'
)
DOUBLES = HEAD + CHECK.format("returns=np.array([2.0, 4.0])")
ANYTHING = HEAD + CHECK.format("")
IN_PLACE = HEAD + 'IN_PLACE = ["x"]\n' + CHECK.format('after={"x": lambda x: 2 * x}')


def grade(source: str, checks: str = DOUBLES, **callbacks: Any) -> dict[str, Any]:
    """Grade a program; unless said, it has to return twice the array `x`."""
    return grader.grade(textwrap.dedent(source), checks, **callbacks)


def first(source: str, checks: str = DOUBLES) -> dict[str, Any]:
    """The result of the first test."""
    result = grade(source, checks)
    assert result["error"] is None, result["error"]
    return result["tests"][0]
