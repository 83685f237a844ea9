"""Compares the outcome of a call with what a check asks for, and names the mistake."""

import copy
import itertools
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from grader_values import Mismatch, arrays, kind, mismatch, show

if TYPE_CHECKING:
    from grader import Check, Mistake

UNSET: Any = object()
ALIKE = 1e-6  # a wrong formula is recognized even where the right one must be met exactly


class Failure(NamedTuple):
    """What is wrong with an outcome."""

    text: str
    expected: str | None = None
    got: str | None = None
    difference: str | None = None


class Call:
    """One call: its arguments, what they were before, and what came back."""

    def __init__(self, parameters: tuple[str, ...] = (), args: tuple[Any, ...] = ()) -> None:
        """Keep a copy of the arguments, and the caller's own arrays."""
        self.args, self.before = args, copy.deepcopy(args)
        self.held = tuple(_held(value) for value in args)
        self.index = {name: i for i, name in enumerate(parameters)}
        self.entries = [list(v) if isinstance(v, list) else None for v in args]
        self.result: Any = None

    def replaced(self, i: int) -> Iterator[int]:
        """Which entries of the list in argument `i` are other objects than before."""
        if (entries := self.entries[i]) is None:
            return iter(())
        pairs = enumerate(itertools.zip_longest(entries, self.args[i]))
        return (j for j, (before, now) in pairs if before is not now)


def _held(value: Any) -> Any:
    """`value` with the arrays that the caller has now, whatever its list holds later."""
    if isinstance(value, (list, tuple)) and any(True for _ in arrays(value, "")):
        return [_held(item) for item in value]
    return value


class Judge:
    """What a check asks for."""

    def __init__(self, check: "Check", in_place: Collection[str]) -> None:
        """Put into words what is expected, before any call."""
        self.check, self.in_place = check, in_place
        self.expected, self.got = self._claim(), ""

    def _claim(self) -> str:
        check = self.check
        if check.raises:
            return check.raises.__name__
        if check.returns is not UNSET:
            return self._approximately(check.returns)
        if check.after:
            name, value = next(iter(check.after.items()))
            return f"{name} = {self._approximately(value)}"
        claims = [kind(check.result_type)] if check.result_type else []
        claims += [] if check.result_dtype is None else [f"dtype {np.dtype(check.result_dtype)}"]
        return "; ".join([*claims, *check.holds])

    def _approximately(self, value: Any) -> str:
        rtol, atol = self.check.rtol, self.check.atol
        parts = [f"relative tolerance {rtol:g}"] if rtol else []
        parts += [f"absolute tolerance {atol:g}"] if atol else []
        return f"{show(self._value(value))} ({', '.join(parts) or 'exactly'})"

    def _value(self, value: Any) -> Any:
        with np.errstate(all="ignore"):
            fresh = self.check.args() if self.check.args else ()
            return value(*fresh) if callable(value) else value

    def failure(self, call: Call) -> Failure | None:
        """The first thing that is wrong with `call`, in the words of the mistake that fits."""
        steps = (self._raises, self._returns, self._kind, self._after, self._untouched, self._holds)
        self.got = show(call.result)
        failure = next((found for step in steps if (found := step(call))), None)
        if failure is None:
            return None
        known = next((m.message for m in self.check.mistakes if self._fits(m, call)), None)
        return failure._replace(text=known or _sentence(f"{failure.text}. {self.check.message}"))

    def _raises(self, call: Call) -> Failure | None:
        return Failure("nothing was raised") if self.check.raises else None

    def _returns(self, call: Call) -> Failure | None:
        if self.check.returns is UNSET:
            return None
        expected = self._value(self.check.returns)
        found = mismatch(expected, call.result, self.check.rtol, self.check.atol)
        return Failure(found.text, difference=found.difference) if found else None

    def _kind(self, call: Call) -> Failure | None:
        result, wanted, dtype = call.result, self.check.result_type, self.check.result_dtype
        if wanted and type(result) is not wanted:
            is_, must = kind(type(result)), kind(wanted)
            return Failure(f"the result is {is_}, not {must}", must, f"{show(result)}, {is_}")
        for path, array in arrays(result, "the result") if dtype is not None else ():
            if array.dtype != dtype:
                right = str(np.dtype(dtype))
                text = f"{path} has dtype {array.dtype}, not {right}"
                return Failure(text, f"dtype {right}", f"dtype {array.dtype}")
        return None

    def _after(self, call: Call) -> Failure | None:
        for name, value in self.check.after.items():
            i = call.index[name]
            before, now = call.before[i], call.held[i]
            self.got = f"{name} = {show(now)}"
            found = mismatch(self._value(value), now, self.check.rtol, self.check.atol, name)
            if found and not _changed(before, now):
                found = found._replace(text=_why_unchanged(name, next(call.replaced(i), None)))
            if found or (found := _other_form(before, now, name)):
                expected = f"{name} = {self._approximately(value)}"
                return Failure(found.text, expected, difference=found.difference)
        return None

    def _untouched(self, call: Call) -> Failure | None:
        for name, i in call.index.items():
            if name in self.in_place:
                continue
            replaced = next(call.replaced(i), None) is not None
            if replaced or _changed(call.before[i], call.held[i]):
                text = f"{name} was changed, but it belongs to the caller"
                now = call.args[i] if replaced else call.held[i]
                return Failure(text, f"{name} = {show(call.before[i])}", f"{name} = {show(now)}")
        return None

    def _holds(self, call: Call) -> Failure | None:
        false = (claim for claim, holds in self.check.holds.items() if not _true(holds, call))
        return next((Failure(f"it does not hold that {claim}", claim) for claim in false), None)

    def _fits(self, mistake: "Mistake", call: Call) -> bool:
        rtol, atol = max(self.check.rtol, ALIKE), self.check.atol
        wrong = [] if mistake.returns is UNSET else [(mistake.returns, call.result)]
        wrong += [(value, call.held[call.index[name]]) for name, value in mistake.after.items()]
        if any(mismatch(self._value(value), got, rtol, atol) for value, got in wrong):
            return False
        return _true(mistake.when, call) if mistake.when else bool(wrong)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] if text.startswith(("the ", "it ", "nothing ")) else text


def _true(claim: Callable[..., bool], call: Call) -> bool:
    try:
        with np.errstate(all="ignore"):
            return bool(claim(call.result, *call.held))
    except Exception:  # a claim about something else than it was made for
        return False


def _changed(before: Any, now: Any) -> bool:
    if isinstance(before, np.ndarray):
        same = before.shape == now.shape and before.dtype == now.dtype
        return not same or before.tobytes() != now.tobytes()
    if isinstance(before, (list, tuple)):
        return len(before) != len(now) or any(map(_changed, before, now))
    return mismatch(before, now) is not None


def _why_unchanged(name: str, replaced: int | None) -> str:
    if replaced is None:
        return f"{name} was not changed at all"
    return f"{name}[{replaced}] was replaced, and the caller's own array is unchanged"


def _other_form(before: Any, now: Any, name: str) -> Mismatch | None:
    for (path, old), (_, new) in zip(arrays(before, name), arrays(now, name), strict=False):
        if old.dtype != new.dtype or old.shape != new.shape:
            was, now = f"{old.dtype} {old.shape}", f"{new.dtype} {new.shape}"
            return Mismatch(f"{path} was {was} and is now {now}")
    return None
