"""A run that was saved, and what tells whether another one equals it."""

import functools
import itertools
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gradstep import TrainingState, TrainingStateError

from .killed_run import Run

NOTHING = r"Nothing was changed\."


def frozen(value: Any) -> Any:
    """A value that compares equal only where every bit is the same."""
    if isinstance(value, Tensor):
        data = value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        return value.dtype, tuple(value.shape), data
    if isinstance(value, dict):
        return {key: frozen(entry) for key, entry in value.items()}
    return [frozen(entry) for entry in value] if isinstance(value, list | tuple) else repr(value)


def everything(run: Run) -> dict[str, Any]:
    """All that a continued run must share with one that was never stopped."""
    parts = {name: frozen(part.state_dict()) for name, part in run.parts().items()}
    generators = random.getstate(), np.random.get_state(legacy=False), torch.get_rng_state()
    return {**parts, "random": frozen(generators)}


@contextmanager
def unchanged(run: Run) -> Iterator[None]:
    before = everything(run)
    yield
    assert everything(run) == before


def advanced(run: Run, count: int) -> Run:
    """The run after `count` more windows."""
    epochs = itertools.chain.from_iterable(run.updates() for _ in itertools.count())
    list(itertools.islice(epochs, count))
    return run


@functools.cache
def saved() -> bytes:
    """The file of a run after four windows, in the middle of its second epoch."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "state")
        TrainingState(**advanced(Run(), 4).parts()).save(path)
        return path.read_bytes()


def saved_in(directory: Path, data: bytes | None = None) -> Path:
    """The path of that file, or of another one in its place."""
    path = directory / "state"
    path.write_bytes(saved() if data is None else data)
    return path


@functools.cache
def other() -> Run:
    """A run that differs from the saved one in everything that a file can change."""
    return advanced(Run(seed=1), 2)


def assert_refused(path: Path, run: Run, message: str) -> None:
    with unchanged(run), pytest.raises(TrainingStateError, match=message) as caught:
        TrainingState(**run.parts()).load(path)
    assert str(path) in str(caught.value)
