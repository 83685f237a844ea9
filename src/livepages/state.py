"""What a page may change outside its own names, kept apart from every other page.

Each page starts as a fresh interpreter does (unseeded generators, default dtype, gradients
on) and finds its own changes again when tests of other pages ran in between. Nothing is
seeded: a page that needs a fixed seed shows it to its readers.
"""

import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

Restore = Callable[[], None]


class Interpreter:
    """The interpreter as one page sees it: `__main__`, and the global state of libraries."""

    def __init__(self) -> None:
        """Start fresh."""
        # a real module, so that classes of the page can be pickled and found by dataclasses
        self.main = ModuleType("__main__")
        self._restore: list[Restore] = [_fresh]

    @contextmanager
    def entered(self, leaf: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the namespace to run in; a leaf gets a copy and leaves no trace in this page."""
        main = ModuleType("__main__") if leaf else self.main
        main.__dict__.update(self.main.__dict__)
        outside, before = _snapshot(), sys.modules["__main__"]
        _apply(self._restore)
        sys.modules["__main__"] = main
        try:
            yield main.__dict__
        finally:
            sys.modules["__main__"] = before
            if not leaf:
                self._restore = _snapshot()
            _apply(outside)


def _apply(restores: list[Restore]) -> None:
    for restore in restores:
        restore()


def _fresh() -> None:
    random.seed()
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()
    if torch := sys.modules.get("torch"):
        torch.seed()


def _snapshot() -> list[Restore]:
    """Note the state of what is loaded; never load anything for it."""
    numbers, folder, environment = random.getstate(), _folder(), dict(os.environ)
    paths = list(sys.path)
    restores = [
        lambda: random.setstate(numbers),
        lambda: os.chdir(folder),
        lambda: sys.path.__setitem__(slice(None), paths),
        lambda: _set_environment(environment),
    ]
    if numpy := sys.modules.get("numpy"):
        restores.append(_setting(numpy.random.get_state, numpy.random.set_state))
    if torch := sys.modules.get("torch"):
        restores += [
            _setting(torch.get_rng_state, torch.set_rng_state),
            _setting(torch.get_default_dtype, torch.set_default_dtype),
            _setting(torch.is_grad_enabled, torch.set_grad_enabled),
            _setting(torch.get_num_threads, torch.set_num_threads),
            _setting(
                torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms
            ),
        ]
    return restores


def _folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # the page stands in a folder that it has removed
        return os.sep


def _setting(get: Callable[[], Any], put: Callable[[Any], Any]) -> Restore:
    value = get()

    def restore() -> None:
        # some setters are slow or load half of torch: call them only to change something
        if get() is not value:
            put(value)

    return restore


def _set_environment(environment: dict[str, str]) -> None:
    if dict(os.environ) != environment:
        os.environ.clear()
        os.environ.update(environment)
