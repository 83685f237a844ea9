"""Values of the learner: shown in short, and compared with what was expected."""

import reprlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

FEW = 12  # entries that are shown of an array
USUAL = (np.dtype(float), np.dtype(int), np.dtype(bool))  # a dtype that goes without saying
NUMBERS = (int, float, complex, np.number, np.bool_)


class Mismatch(NamedTuple):
    """How a value differs: in words, and by how much where that is a number."""

    text: str
    difference: str | None = None


class _Short(reprlib.Repr):
    """`repr` for a result table: never long, never an error."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = 8
        self.maxstring = self.maxother = self.maxlong = 120

    def repr1(self, value: Any, level: int) -> str:
        if not isinstance(value, np.ndarray):
            return super().repr1(value, level)
        array = np.asarray(value)
        with np.printoptions(threshold=FEW, edgeitems=3, precision=8, linewidth=100_000):
            text = " ".join(np.array2string(array, separator=", ").split()).replace(" ]", "]")
        shape = f", shape={array.shape}" if array.size > FEW or not array.size else ""
        dtype = "" if array.dtype in USUAL else f", dtype={array.dtype}"
        return f"array({_cut(text, 400)}{shape}{dtype})"

    def repr_instance(self, value: Any, level: int) -> str:
        return _cut(repr(value), 120)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."


def show(value: Any) -> str:
    """A short `repr` of any object, also of one whose `repr` is long, endless or broken."""
    try:
        text = _Short().repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"
    return _cut(text, 2000).encode("utf-8", "replace").decode("utf-8")


def arrays(value: Any, path: str) -> Iterator[tuple[str, np.ndarray]]:
    """All arrays of an argument, each with the expression that reaches it."""
    if isinstance(value, np.ndarray):
        yield path, value
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from arrays(item, f"{path}[{i}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from arrays(item, f"{path}[{key!r}]")


def mismatch(
    expected: Any, got: Any, rtol: float = 0.0, atol: float = 0.0, path: str = "the result"
) -> Mismatch | None:
    """How `got` differs from `expected`, or None.

    Numbers compare by value, whether Python's or NumPy's; arrays must have the expected shape;
    lists and tuples, and dicts, are compared entry by entry. NaN equals NaN.
    """
    if isinstance(expected, np.ndarray):
        return _array_mismatch(expected, got, rtol, atol, path)
    if isinstance(expected, (bool, np.bool_)):
        right = isinstance(got, (bool, np.bool_)) and bool(got) == bool(expected)
        return None if right else Mismatch(f"{path} is not {bool(expected)}{_kind(got)}")
    if isinstance(expected, NUMBERS):
        if not _is_number(got):
            return Mismatch(f"{path} is not a number{_kind(got)}")
        return _array_mismatch(np.asarray(expected), np.asarray(got), rtol, atol, path)
    if isinstance(expected, (list, tuple)):
        return _entries_mismatch(expected, got, rtol, atol, path)
    if isinstance(expected, dict):
        return _dict_mismatch(expected, got, rtol, atol, path)
    same = type(got) is type(expected) and got == expected
    return None if same else Mismatch(f"{path} is not {show(expected)}{_kind(got)}")


def _kind(got: Any) -> str:
    if got is None:
        return ": it is None, so a `return` may be missing"
    return f": it is {kind(type(got))}"


def kind(of: type) -> str:
    """A type as it stands in a sentence."""
    name = f"{of.__module__}.{of.__name__}".removeprefix("builtins.")
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _is_number(got: Any) -> bool:
    if isinstance(got, np.ndarray):
        return got.ndim == 0 and got.dtype.kind in "biufc"
    return isinstance(got, NUMBERS)


def _entries_mismatch(
    expected: list[Any] | tuple[Any, ...], got: Any, rtol: float, atol: float, path: str
) -> Mismatch | None:
    if not isinstance(got, (list, tuple)):
        return Mismatch(f"{path} is not {kind(type(expected))}{_kind(got)}")
    if len(got) != len(expected):
        return Mismatch(f"{path} has {len(got)} entries, not {len(expected)}")
    pairs = enumerate(zip(expected, got, strict=True))
    found = (mismatch(e, g, rtol, atol, f"{path}[{i}]") for i, (e, g) in pairs)
    return next((each for each in found if each), None)


def _dict_mismatch(
    expected: dict[Any, Any], got: Any, rtol: float, atol: float, path: str
) -> Mismatch | None:
    if not isinstance(got, dict):
        return Mismatch(f"{path} is not a dict{_kind(got)}")
    if set(got) != set(expected):
        return Mismatch(f"{path} has the keys {show(list(got))}, not {show(list(expected))}")
    found = (mismatch(e, got[k], rtol, atol, f"{path}[{k!r}]") for k, e in expected.items())
    return next((each for each in found if each), None)


def _array_mismatch(
    expected: np.ndarray, got: Any, rtol: float, atol: float, path: str
) -> Mismatch | None:
    if not isinstance(got, (np.ndarray, np.generic)):
        return Mismatch(f"{path} is not a NumPy array{_kind(got)}")
    got = np.asarray(got)
    if got.dtype.kind not in "biufc":
        return Mismatch(f"{path} holds {got.dtype} entries, not numbers")
    if got.shape != expected.shape:
        return Mismatch(f"{path} has shape {got.shape}, not {expected.shape}")
    wide = np.complex128 if "c" in (expected.dtype.kind, got.dtype.kind) else np.float64
    e, g = expected.astype(wide), got.astype(wide)
    with np.errstate(all="ignore"):
        equal = (g == e) | np.isnan(e) & np.isnan(g)
        off = np.where(equal, 0, np.abs(g - e))
        near = np.isfinite(e) & (off <= atol + rtol * np.abs(e))
    if np.all(equal | near):
        return None
    return Mismatch(f"{path} differs", _largest(e, g, np.nan_to_num(off, nan=np.inf), path))


def _largest(expected: np.ndarray, got: np.ndarray, off: np.ndarray, path: str) -> str:
    where = np.unravel_index(np.argmax(off), off.shape)
    e, g = expected[where], got[where]
    place = f" at {path}[{', '.join(str(int(i)) for i in where)}]" if where else ""
    if not np.isfinite(e) or not np.isfinite(g):
        return f"{g:.6g} instead of {e:.6g}{place}"
    return f"{off[where]:.3g}{place}" + (f" (relative {off[where] / abs(e):.2g})" if e else "")
