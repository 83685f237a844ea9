"""Save and load everything that a run needs to continue bit for bit."""

import copy
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import torch
from torch.nn import Module
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from ._parts import (
    Stateful,
    checked_part,
    checked_state,
    copied,
    difference,
    optimized,
    sharded,
    structure,
)
from ._random_state import random_state, set_random_state
from ._state_file import Place, TrainingStateError, read, write

__all__ = ["TrainingState", "TrainingStateError"]

SHOWN = 3  # differences that a message lists


class TrainingState:
    """The parts of a run, saved together at the end of a window and loaded together.

    A run that is killed at any moment and continued from its file ends with the same bits
    as one that was never stopped, on the same devices and versions:

    1. The file holds every part and the state of every process-wide random generator:
       Python's, NumPy's, torch's on the CPU and on each CUDA device.
    2. Saving is atomic: the path names the previous file or the new one, each whole.
    3. Loading is all or nothing: a damaged file, or one of a run that was built
       differently, is refused before anything changes. Each part is then compared with
       the file, bit for bit.
    4. Loading runs no code from the file (`weights_only=True`).

    Settings that parts keep in their state, such as learning rates and betas, come from the
    file. What no part holds is for the program to build again: the model's code, train or
    eval mode, buffers that are not persistent, data itself.

    Each process saves to a path of its own, unless parameters are DTensors (FSDP2, tensor
    parallelism). Then the path is one directory for all ranks, on a file system that they
    share; every rank calls `save` and `load`, and what one cannot do none does. The shards
    may be loaded by another number of ranks, or by another mesh. With the same number, each
    rank continues its own generators, and its own part where ranks differ in it, such as a
    data cursor. With another, a part must be the same on all ranks; each rank that the file
    knows continues that rank's generators, and further ranks keep the ones they have.

    Args:
        model: The model whose gradients are accumulated.
        optimizer: Its optimizer.
        scheduler: The learning rate scheduler, which counts updates.
        scaler: The `torch.amp.GradScaler`.
        data: Where the next microbatch comes from: [`Batches`][gradstep.Batches], or any
            loader with the two methods. Generators of the data belong to its state.
        clocks: What has been counted so far.
        **more: Further parts by name, such as `ema=` or `records=`. A part is anything with
            `state_dict()` and `load_state_dict()`.

    Raises:
        TypeError: A part lacks one of the two methods, `model` is no `Module` or
            `optimizer` is no `Optimizer`.

    Examples:
        >>> import pathlib, tempfile, torch, gradstep
        >>> model = torch.nn.Linear(2, 1)
        >>> optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        >>> batches = gradstep.Batches((torch.ones(8, 2), torch.zeros(8, 1)), 4, seed=0)
        >>> state = gradstep.TrainingState(model=model, optimizer=optimizer, data=batches)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "state"
        >>> if path.exists():  # the first lines of every run: continue where the last one was
        ...     state.load(path)
        >>> for inputs, targets in batches:
        ...     loss = torch.nn.functional.mse_loss(model(inputs), targets)
        ...     loss.backward()
        ...     optimizer.step()
        ...     optimizer.zero_grad()
        ...     state.save(path)
        >>> trained = model.weight.clone()
        >>> _ = torch.nn.init.zeros_(model.weight)
        >>> state.load(path)
        >>> torch.equal(model.weight, trained)
        True

    Source:
        transformers issue 22143 and gpt-neox pull request 308 show what is lost otherwise.
    """

    def __init__(
        self,
        *,
        model: Module,
        optimizer: Optimizer,
        scheduler: Stateful | None = None,
        scaler: torch.amp.GradScaler | None = None,
        data: Stateful | None = None,
        clocks: Stateful | None = None,
        **more: Stateful | None,
    ) -> None:
        named = {"scheduler": scheduler, "scaler": scaler, "data": data, "clocks": clocks, **more}
        given = {name: part for name, part in named.items() if part is not None}
        given = {"model": model, "optimizer": optimizer, **given}
        self._parts = {name: checked_part(name, part) for name, part in given.items()}

    def save(self, path: Place) -> None:
        """Write the state to `path`, whole or not at all, and wait until it is on the disk.

        Killed at any moment, the process leaves the previous file or the new one. What else
        it leaves, a `.partial` file beside it or a folder of shards, the next save removes.

        Args:
            path: The file to write or to replace, or the directory of a sharded run. The
                directory that holds it must exist.

        Raises:
            TrainingStateError: A parameter holds a gradient: the window is not complete, and
                what it has accumulated would be lost. Of a sharded run also: another rank
                could not save, or has other parts.
            TypeError: The state of a part holds more than tensors, plain values and
                containers of them, so that loading it could run foreign code.
            OSError: The file cannot be written, for example on a full disk. The previous
                file is still there.
        """
        if not sharded(self._parts):
            write(path, self._document())
            return
        from ._sharded_state import write_together

        write_together(path, self._document, self._parts)

    def load(self, path: Place) -> None:
        """Continue from the state in `path`: all parts and generators, or none.

        Gradients that the parameters hold are dropped, as at the end of a window. The
        file, and a copy to go back to, are in memory meanwhile.

        Args:
            path: What `save` has written.

        Raises:
            TrainingStateError: The file is damaged, is no training state or is in another
                format; it was saved with other parts, names, shapes, dtypes, optimizers,
                schedulers or CUDA devices; or a part did not take its state.
            OSError: There is no such file, or it cannot be read. Where that is so on another rank
                only, a `TrainingStateError`.
        """
        here = structure(self._parts)
        if not sharded(self._parts):
            document = read(path)
            _refuse_other_run(path, document["structure"], here)
            self._continue(path, document["parts"], document["random"], nullcontext())
            return
        from ._sharded_state import read_together, together

        states, random = read_together(
            path, lambda saved: _refuse_other_run(path, saved, here), self._parts
        )
        self._continue(path, states, random, together(""))

    def _continue(
        self, path: Place, loaded: dict[str, Any], random: Any, agreed: AbstractContextManager[None]
    ) -> None:
        """Load all states and, unless it is None, the random state; or put back all."""
        randomness, states = random_state(), copied(self._states())
        try:
            with agreed:
                for name, part in self._parts.items():
                    _load_part(name, part, loaded[name])
                if random is not None:
                    _load_random(random)
        except BaseException as error:
            lost = self._put_back(states)
            set_random_state(randomness)
            if not isinstance(error, Exception):
                raise  # such as KeyboardInterrupt
            outcome = f"Not put back: {', '.join(lost)}." if lost else "Nothing was changed."
            reason = str(error).rstrip(".")
            raise TrainingStateError(f"{path} cannot be loaded: {reason}. {outcome}") from error
        for parameter, _ in optimized(self._parts):
            parameter.grad = None

    def _document(self) -> dict[str, Any]:
        _refuse_pending_gradients(self._parts)
        return {
            "structure": structure(self._parts),
            "parts": self._states(),
            "random": random_state(),  # last: a loader may draw a seed when asked for its state
        }

    def _states(self) -> dict[str, Any]:
        shards = sharded(self._parts)
        return {name: checked_state(name, part, shards) for name, part in self._parts.items()}

    def _put_back(self, states: dict[str, Any]) -> list[str]:
        """Load the states of before, and return the names of parts that refuse even those."""
        for name, part in self._parts.items():
            with suppress(Exception):  # the comparison decides
                part.load_state_dict(copy.copy(states[name]))
        return [
            name
            for name, part in self._parts.items()
            if difference(part.state_dict(), states[name], name) is not None
        ]


def _refuse_pending_gradients(parts: dict[str, Stateful]) -> None:
    pending = [name for parameter, name in optimized(parts) if parameter.grad is not None]
    if pending:
        raise TrainingStateError(
            f"a state is saved at the end of a window, but gradients are pending ({len(pending)}, "
            f"the first of {pending[0]}) and would be lost. Save after optimizer.step() and "
            "optimizer.zero_grad(set_to_none=True)."
        )


def _load_part(name: str, part: Stateful, state: Any) -> None:
    try:
        # a scheduler takes any key for an attribute, and would keep it when it is put back
        if isinstance(part, LRScheduler) and {*state} != {*part.state_dict()}:
            raise ValueError(f"its keys are {', '.join(map(repr, state))}")
        part.load_state_dict(copy.copy(state))  # a copy: some take their entries out
    except Exception as error:
        raise ValueError(f"{name} refuses its state: {error}") from error
    place = difference(part.state_dict(), state, name)
    if place:
        raise ValueError(f"{place} is not what the file holds once {name} has loaded it")


def _load_random(state: Any) -> None:
    set_random_state(state)
    place = difference(random_state(), state, "the random state")
    if place:
        raise ValueError(f"{place} is not what the file holds once it is set")


def _refuse_other_run(path: Place, saved: dict[str, str], here: dict[str, str]) -> None:
    differing = [
        f"{place} is {saved.get(place, 'absent')} in the file and {here.get(place, 'absent')} here"
        for place in {**saved, **here}
        if saved.get(place) != here.get(place)
    ]
    if differing:
        rest = f"; and {len(differing) - SHOWN} more" if len(differing) > SHOWN else ""
        raise TrainingStateError(
            f"{path} belongs to a run that was built differently: "
            f"{'; '.join(differing[:SHOWN])}{rest}. Build the parts as in the run that saved it. "
            "Nothing was changed."
        )
