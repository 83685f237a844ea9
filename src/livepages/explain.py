"""What the two sides of a failed `assert` were, found out after it failed.

The code runs exactly as a reader runs it: nothing is rewritten, and a caught AssertionError
is the same as at home. Only when a block has stopped are the sides evaluated once more, in
the frame that failed; if they hold this time (the block is random) nothing is said.
"""

import ast
import linecache
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from types import FrameType, TracebackType
from typing import Any

LONGEST = 160  # characters of one value


def values(traceback: TracebackType | None, calls: bool = True) -> tuple[str, ...]:
    """Return a line "expression = value" for each side of the assert that failed.

    Without `calls` an assert that calls something is left unexplained: among several processes
    one that repeats a collective alone would wait for ever.
    """
    last = traceback
    while last and last.tb_next:
        last = last.tb_next
    if last is None:
        return ()
    test = _failed_test(last.tb_frame.f_code.co_filename, last.tb_lineno)
    if test is None or (not calls and any(isinstance(n, ast.Call) for n in ast.walk(test))):
        return ()
    with redirect_stdout(StringIO()):
        return tuple(_lines(test, last.tb_frame))


def _failed_test(file: str, line: int) -> ast.expr | None:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return None
    asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    around = [a for a in asserts if a.lineno <= line <= (a.end_lineno or 0) and a.msg is None]
    return around[-1].test if around else None


def _lines(test: ast.expr, frame: FrameType) -> Iterator[str]:
    names = {**frame.f_globals, **frame.f_locals}
    try:
        while isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            test = next(part for part in test.values if not _value(part, names))
        if _value(test, names):
            return
        for side in _sides(test):
            yield f"{ast.unparse(side)} = {_short(_value(side, names))}"
    except Exception:  # a value that cannot be had again explains nothing
        return


def _sides(test: ast.expr) -> list[ast.expr]:
    if isinstance(test, ast.Compare):
        sides = [test.left, *test.comparators]
    else:
        calls = [node for node in ast.walk(test) if isinstance(node, ast.Call)]
        sides = [argument for call in calls for argument in call.args][:3]
    return [side for side in sides if not isinstance(side, ast.Constant)]


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "<assert>", "eval"), names)


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
