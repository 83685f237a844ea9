"""Other runs' files, and parts that fail: refused by name, and nothing changes."""

import math
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim import lr_scheduler

from gradstep import Batches, TrainingState, TrainingStateError, _parts, _state_file

from .killed_run import Records, Run
from .saved_run import (
    NOTHING,
    advanced,
    assert_refused,
    frozen,
    other,
    saved,
    saved_in,
    unchanged,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return saved_in(tmp_path)


def with_model(run: Run, *layers: torch.nn.Module) -> None:
    run.model = torch.nn.Sequential(*layers)
    run.optimizer = torch.optim.AdamW(run.model.parameters(), lr=0.01)


def built(**changes: Callable[[Run], Any]) -> Callable[[Run], None]:
    return lambda run: vars(run).update({name: make(run) for name, make in changes.items()})


Linear = torch.nn.Linear
OTHER_RUNS: dict[str, tuple[Callable[[Run], None], str]] = {
    "names": (
        lambda run: with_model(run, Linear(6, 8), torch.nn.GELU(), Linear(8, 3)),
        r"model 3\.weight is torch\.float32 \[3, 8\] in the file and absent here; .*and 3 more\.",
    ),
    "shapes": (
        lambda run: with_model(run, Linear(6, 9), *run.model[1:3], Linear(9, 3)),
        r"model 0\.weight is torch\.float32 \[8, 6\] in the file and torch\.float32 \[9, 6\] here",
    ),
    "dtypes": (
        lambda run: run.model.double(),
        r"0\.weight is torch\.float32 \[8, 6\] in the file and torch\.float64 \[8, 6\] here",
    ),
    "model": (built(model=lambda run: Model()), r"model is Sequential in the file and Model here"),
    "optimizer": (
        built(optimizer=lambda run: torch.optim.Adam(run.model.parameters())),
        r"optimizer is AdamW in the file and Adam here\. Build the parts as in the run that saved",
    ),
    "order": (
        built(optimizer=lambda run: torch.optim.AdamW([*run.model.parameters()][::-1])),
        r"optimizer group 0 parameter 0 is model 0\.weight, .* and model 3\.bias, torch\.float32",
    ),
    "groups": (
        built(
            optimizer=lambda run: torch.optim.AdamW(
                [{"params": layer.parameters()} for layer in (run.model[0], run.model[3])]
            )
        ),
        r"optimizer group 0 parameter 2 is model 3\.weight, .* in the file and absent here",
    ),
    "outside": (
        built(optimizer=lambda run: torch.optim.AdamW([*Run().model.parameters()])),
        r"group 0 parameter 0 is model 0\.weight, .* in the file and of no part, torch",
    ),
    "scheduler": (
        built(scheduler=lambda run: lr_scheduler.ExponentialLR(run.optimizer, 0.9)),
        r"scheduler is StepLR in the file and ExponentialLR here",
    ),
    "sequence": (
        built(scheduler=lambda run: lr_scheduler.ChainedScheduler([run.scheduler])),
        r"scheduler is StepLR in the file and ChainedScheduler of StepLR here",
    ),
    "scaler": (
        built(scaler=lambda run: torch.amp.GradScaler("cpu", enabled=False)),
        r"scaler is GradScaler in the file and GradScaler, disabled here",
    ),
    "missing": (built(clocks=lambda run: None), r"clocks is Clocks in the file and absent here"),
    "more": (built(ema=lambda run: Model()), r"ema is absent in the file and Model here; ema weig"),
    "data": (
        built(data=lambda run: Batches(torch.ones(31), 4, seed=3)),
        r"cannot be loaded: data refuses its state: .* its samples is 30, here it is 31\. Build",
    ),
}


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))


@pytest.mark.parametrize("difference", OTHER_RUNS)
def test_a_file_of_a_run_that_was_built_differently_is_refused(path: Path, difference: str) -> None:
    run = Run(seed=1)
    change, message = OTHER_RUNS[difference]
    change(run)
    parts = {name: part for name, part in run.parts().items() if part is not None}
    before = {name: frozen(part.state_dict()) for name, part in parts.items()}
    generators = frozen([random.getstate(), np.random.get_state(), torch.get_rng_state()])
    with pytest.raises(TrainingStateError, match=message + rf".*{NOTHING}") as caught:
        TrainingState(**run.parts()).load(path)
    assert str(path) in str(caught.value)
    assert {name: frozen(part.state_dict()) for name, part in parts.items()} == before
    assert frozen([random.getstate(), np.random.get_state(), torch.get_rng_state()]) == generators


def test_other_cuda_devices_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 7)
    message = rf"number of CUDA devices is {saved_devices(path)} in the file and 7 here"
    assert_refused(path, other(), message)


def saved_devices(path: Path) -> str:
    return str(_state_file.read(path)["structure"]["number of CUDA devices"])


# parts that fail


class Late(Records):
    """The last part to be loaded, which misbehaves the first time."""

    def __init__(self, fault: Callable[["Late"], None]) -> None:
        super().__init__()
        self.fault = fault
        self.loads = 0

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.loads += 1
        if self.loads == 1:
            self.fault(self)
        super().load_state_dict({"rows": state_dict.pop("rows")})  # as SequentialLR does


def interrupt(_: Late) -> None:
    raise KeyboardInterrupt("by hand")


def stumble(_: Late) -> None:
    random.random(), np.random.random(), torch.rand(1)
    raise RuntimeError("out of memory")


def with_late(path: Path, fault: Callable[[Late], None]) -> tuple[Run, TrainingState]:
    """A run whose last part fails to load, and a file that this run could have saved."""
    document = _state_file.read(path)
    document["structure"] = {**document["structure"], "records": "Late"}
    _state_file.write(path, document)
    run = advanced(Run(seed=1), 2)
    rows = run.records.rows
    run.records = Late(fault)
    run.records.rows = rows
    return run, TrainingState(**run.parts())


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (stumble, TrainingStateError, r"records refuses its state: out of memory\. " + NOTHING),
        (interrupt, KeyboardInterrupt, "by hand"),
    ],
)
def test_a_load_that_fails_midway_is_undone(
    path: Path, fault: Callable[[Late], None], error: type[BaseException], message: str
) -> None:
    run, state = with_late(path, fault)
    with unchanged(run), pytest.raises(error, match=message):
        state.load(path)
    assert run.records.loads == 2
    state.load(path)  # nothing is left over that would disturb it
    assert run.clocks.attempted == 4


def test_a_part_that_takes_another_state_than_the_file_holds_is_found(path: Path) -> None:
    run, state = with_late(path, lambda late: None)
    run.records.load_state_dict = lambda state_dict: None  # type: ignore[method-assign]
    message = r"records\['rows'\], the length is not what the file holds once records has loaded"
    with unchanged(run), pytest.raises(TrainingStateError, match=message):
        state.load(path)


def test_a_part_that_cannot_be_put_back_is_named(path: Path) -> None:
    def always(late: Late) -> None:
        late.rows, late.loads = [], 0
        stumble(late)

    _, state = with_late(path, always)
    with pytest.raises(TrainingStateError, match=r"out of memory\. Not put back: records\."):
        state.load(path)


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [
        ({"a": [1, 2.0, math.nan]}, {"a": [1, 2.0, math.nan]}, None),
        ({"a": [1, 2.0]}, {"a": [1, 2.5]}, "x['a'][1]"),
        ({"a": [1, 2.0]}, {"a": [1]}, "x['a'], the length"),
        ({"a": 1}, {"a": 1, "b": 2}, "x, the keys"),
        ({"a": 1, "b": 2}, {"a": 1}, "x, the keys"),
        ({"a": 1}, {"a": 1.0}, "x['a']"),
        (torch.tensor([0.0, math.nan]), torch.tensor([0.0, math.nan]), None),
        (torch.tensor(0.0), torch.tensor(-0.0), "x"),
        (torch.ones(2), torch.ones(2).double(), "x"),
        (torch.ones(2), torch.ones(2, 1), "x"),
        (torch.eye(2).to_sparse(), torch.eye(2).to_sparse(), None),
        (torch.eye(2).to_sparse(), torch.eye(2), "x"),
        (torch.eye(2).to_sparse(), 2 * torch.eye(2).to_sparse(), "x"),
        (torch.eye(3)[:, 1], torch.eye(3)[1], None),
    ],
)
def test_the_place_of_the_first_difference_is_found(one: Any, other: Any, place: str) -> None:
    assert _parts.difference(one, other, "x") == place


def test_moments_that_torch_would_round_are_not_taken_for_restored(tmp_path: Path) -> None:
    # torch casts an optimizer's state to the dtype of its parameter, whatever was saved
    model = torch.nn.Linear(2, 1).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer.state[model.weight]["momentum_buffer"] = torch.full((1, 2), 1 / 3)
    state = TrainingState(model=model, optimizer=optimizer)
    state.save(tmp_path / "state")
    message = r"optimizer\['state'\]\[0\]\['momentum_buffer'\] is not what the file holds"
    with pytest.raises(TrainingStateError, match=message):
        state.load(tmp_path / "state")


@pytest.mark.parametrize("name", ["scheduler", "data", "ema"])
def test_parts_without_a_state_are_refused(name: str) -> None:
    message = (
        rf"{name} must have state_dict\(\) and load_state_dict\(\), got list without state_dict "
        r"and load_state_dict\. Give it the two methods"
    )
    with pytest.raises(TypeError, match=message):
        TrainingState(**{**Run().parts(), name: [1]})


def test_a_model_and_an_optimizer_must_be_those_of_torch() -> None:
    parts = Run().parts()
    with pytest.raises(TypeError, match=r"model must be a torch Module, got Records\. Pass other"):
        TrainingState(**{**parts, "model": Records()})
    with pytest.raises(TypeError, match=r"optimizer must be a torch Optimizer, got Records"):
        TrainingState(**{**parts, "optimizer": Records()})


@pytest.mark.parametrize(
    ("row", "place"),
    [
        ({"norm": np.float64(2.0)}, r"\['rows'\]\[0\]\['norm'\] is of type float64"),
        ({"path": Path("a")}, r"\['rows'\]\[0\]\['path'\] is of type (Posix|Windows)Path"),
        ({np.int64(3): 1}, r"\['rows'\]\[0\], a key is of type int64"),
    ],
)
def test_a_state_that_could_not_be_loaded_again_is_not_saved(
    path: Path, row: dict[Any, Any], place: str
) -> None:
    run = Run()
    run.records.rows.append(row)
    message = rf"the state of records{place}, which a state file does not keep\. Turn it into"
    with pytest.raises(TypeError, match=message):
        TrainingState(**run.parts()).save(path)
    assert path.read_bytes() == saved()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_target_that_is_no_regular_file_is_refused_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    model = torch.nn.Linear(2, 1)
    state = TrainingState(model=model, optimizer=torch.optim.SGD(model.parameters(), 0.1))
    with pytest.raises(TrainingStateError, match=r"pipe is there and is no regular file\."):
        state.save(pipe)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_a_save_keeps_the_mode_of_the_file_it_replaces(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 1)
    state = TrainingState(model=model, optimizer=torch.optim.SGD(model.parameters(), 0.1))
    path = tmp_path / "state"
    state.save(path)
    path.chmod(0o600)
    state.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
