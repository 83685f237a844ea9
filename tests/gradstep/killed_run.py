"""A training run that is killed with SIGKILL, continued, and killed again.

`python -m tests.gradstep.killed_run DIRECTORY SEED` runs it undisturbed, then with ten kills,
and prints as JSON where they hit. Every life is a fork of a process that has only imported
torch: a fresh process without the seconds of an import.
"""

import itertools
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor

import gradstep
from gradstep import (
    Batches,
    Clocks,
    TrainingState,
    Update,
    _parts,
    _random_state,
    _state_file,
    state,
    updates,
)

EPOCHS = 8
KILLS = 10
OWN = os.path.dirname(gradstep.__file__)
TORCH = os.path.dirname(torch.__file__)
SAVING = {module.__file__ for module in (state, _parts, _random_state, _state_file)}
SAVING |= {os.path.join(TORCH, "serialization.py")}
TRAINING = (OWN, __file__, os.path.join(TORCH, "optim"), os.path.join(TORCH, "amp"))

Counts = Callable[[CodeType], bool]


def nowhere(code: CodeType) -> bool:
    return False


def saving(code: CodeType) -> bool:
    return code.co_filename in SAVING


def training(code: CodeType) -> bool:
    return code.co_filename.startswith(TRAINING) and not saving(code)


def everywhere(code: CodeType) -> bool:
    return saving(code) or training(code)


def writing(code: CodeType) -> bool:
    return code.co_filename == _state_file.__file__


def replacing(code: CodeType) -> bool:
    return writing(code) and "_Digested" not in code.co_qualname  # whose lines come by hundreds


class Noisy(torch.utils.data.Dataset[tuple[Tensor, Tensor]]):
    """A data set that draws from Python's and NumPy's generators for every sample."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(7)
        self.inputs = torch.randn(30, 6, generator=generator)
        self.targets = torch.randint(0, 3, (30,), generator=generator)
        self.targets[::5] = -100

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        noise = 0.1 * (random.gauss() + np.random.standard_normal())
        return self.inputs[index] + noise, self.targets[index]


class Records:
    """What each window reported: one more part of the state."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.rows = list(state_dict["rows"])


class Run:
    """Dropout, shuffled data, AdamW, a scheduler and a loss scale that overflows."""

    def __init__(self, seed: int = 0) -> None:
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Dropout(0.3), torch.nn.Linear(8, 3)
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 5, gamma=0.9)
        # doubles after each accepted update until fp16 overflows: some updates are skipped
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14, growth_interval=1)
        self.data = Batches(Noisy(), 4, seed=3)
        self.clocks = Clocks()
        self.records = Records()

    def parts(self) -> dict[str, Any]:
        return dict(vars(self))

    def updates(self) -> Iterator[Update]:
        """The rest of an epoch, three microbatches at a time."""
        for update in updates(
            self.model,
            self.data,
            self.optimizer,
            self.scheduler,
            accumulation_steps=3,
            scaler=self.scaler,
            autocast=torch.float16,
        ):
            self.clocks.count(update)
            # an update counts its window within one call, and each life is another call
            self.records.rows.append({**asdict(update), "window": self.clocks.attempted})
            yield update


def train(path: Path) -> None:
    """A whole program: continue where the last one was, save after every window."""
    run = Run()
    state = TrainingState(**run.parts())
    if path.exists():
        state.load(path)
    while run.data.epoch < EPOCHS:
        for _ in run.updates():
            state.save(path)


def life(
    work: Callable[[], None], counts: Counts = nowhere, moment: int | None = None
) -> dict[str, Any]:
    """Run `work` in a process of its own that dies as it reaches its n-th counted line.

    Returns the signal that ended it, the counted lines by file and where the last one is.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _live(work, counts, moment, writing)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        report: dict[str, Any] = json.loads(pipe.read() or "{}")
    _, status = os.waitpid(child, 0)
    return {"signal": os.WTERMSIG(status), "status": status, **report}


def _live(work: Callable[[], None], counts: Counts, moment: int | None, writing: int) -> None:
    lines: Counter[str] = Counter()

    def report(place: str) -> None:
        os.write(writing, json.dumps({"lines": lines, "place": place}).encode())

    def at_line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            lines[frame.f_code.co_filename] += 1
            if lines.total() == moment:
                report(f"{os.path.basename(frame.f_code.co_filename)} {frame.f_code.co_qualname}")
                os.kill(os.getpid(), signal.SIGKILL)
        return at_line

    status = 1
    try:
        if counts is not nowhere:
            sys.settrace(lambda frame, *_: at_line if counts(frame.f_code) else None)
        work()
        sys.settrace(None)
        report("end")
        status = 0
    finally:
        os._exit(status)  # never back into the code of the parent


def killed_run(directory: Path, seed: int) -> dict[str, Any]:
    """The same run twice: undisturbed, and killed ten times at lines drawn from `seed`."""
    whole, killed = directory / "whole", directory / "killed"
    lines = life(lambda: train(whole), everywhere)["lines"]
    kinds = {
        training: sum(n for file, n in lines.items() if file not in SAVING),
        saving: sum(n for file, n in lines.items() if file in SAVING),
        writing: lines[_state_file.__file__],
    }
    drawn, kills = random.Random(seed), []
    for counts, total in itertools.islice(itertools.cycle(kinds.items()), KILLS):
        # at most an eleventh of the run each, so that all ten are before its end
        moment = drawn.randint(1, total // (KILLS + 1))
        kill = life(lambda: train(killed), counts, moment)
        kills.append({**kill, "kind": counts.__name__, "left": sorted(os.listdir(directory))})
    return {"kills": kills, "last": life(lambda: train(killed))}


def killed_saves(directory: Path) -> list[dict[str, Any]]:
    """One load, update and save, killed at each line around the writing of the file."""
    directory.mkdir()
    path = directory / "state"

    def window() -> None:
        run = Run()
        state = TrainingState(**run.parts())
        if path.exists():
            state.load(path)
        next(run.updates())
        state.save(path)

    life(window)
    before = path.read_bytes()
    total = sum(life(window, replacing)["lines"].values())
    after = path.read_bytes()
    kills = []
    for moment in range(1, total + 1):
        path.write_bytes(before)
        kill = life(window, replacing, moment)
        found = {before: "before", after: "after"}.get(path.read_bytes(), "neither")
        kills.append({**kill, "found": found, "left": sorted(os.listdir(directory))})
    return kills


def main(directory: Path, seed: int) -> dict[str, Any]:
    torch.set_num_threads(1)  # a fork takes no threads along
    Run()  # imports what torch imports late, once for all lives
    return {"run": killed_run(directory, seed), "saves": killed_saves(directory / "saves")}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))
