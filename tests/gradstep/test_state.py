"""Training states: bit-equal continuation, killed or not, at the ends of windows."""

import json
import math
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim import lr_scheduler

from gradstep import TrainingState, TrainingStateError, _state_file

from .killed_run import KILLS, Records, Run
from .saved_run import advanced, everything, frozen, saved, saved_in

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return saved_in(tmp_path)


def test_a_continued_run_equals_one_that_was_never_stopped(path: Path) -> None:
    start = everything(Run())
    whole = everything(advanced(Run(), 9))
    run = Run(seed=1)
    TrainingState(**run.parts()).load(path)
    assert everything(run) == everything(advanced(Run(), 4))
    TrainingState(**run.parts()).load(path)
    assert everything(advanced(run, 5)) == whole
    assert not [name for name in whole if whole[name] == start[name]]  # everything has moved


def forget_part(name: str) -> Callable[[Run], None]:
    return lambda run: run.parts()[name].load_state_dict(Run().parts()[name].state_dict())


PARTS = ("model", "optimizer", "scheduler", "scaler", "data", "clocks", "records")
FORGOTTEN = {name: forget_part(name) for name in PARTS} | {
    "python's generator": lambda run: random.seed(0),
    "numpy's generator": lambda run: np.random.seed(0),
    "torch's generator": lambda run: torch.manual_seed(0),
}


@pytest.mark.parametrize("forgotten", FORGOTTEN)
def test_a_run_that_forgets_one_thing_ends_elsewhere(path: Path, forgotten: str) -> None:
    whole = everything(advanced(Run(), 9))
    run = Run()
    TrainingState(**run.parts()).load(path)
    generators = random.getstate(), np.random.get_state(), torch.get_rng_state()
    FORGOTTEN[forgotten](run)
    if "generator" not in forgotten:  # building the run that it goes back to has drawn from them
        random.setstate(generators[0])
        np.random.set_state(generators[1])
        torch.set_rng_state(generators[2])
    differing = [
        name for name, state in everything(advanced(run, 5)).items() if state != whole[name]
    ]
    expected = {"clocks": ["clocks", "records"], "records": ["records"]}.get(forgotten)
    assert differing == expected if expected else "model" in differing


def test_states_keep_nan_and_negative_zero(tmp_path: Path) -> None:
    run = Run()
    weights = run.model[0].weight
    with torch.no_grad():
        weights[0, :2] = torch.tensor([-0.0, math.nan])
    TrainingState(**run.parts()).save(tmp_path / "state")
    before = everything(run)
    torch.nn.init.ones_(weights)
    assert everything(run) != before
    TrainingState(**run.parts()).load(tmp_path / "state")
    assert everything(run) == before


SCHEDULERS: dict[str, Callable[[torch.optim.Optimizer], Any]] = {
    "lambda": lambda o: lr_scheduler.LambdaLR(o, lambda t: 1 / (t + 1)),
    "multi": lambda o: lr_scheduler.MultiStepLR(o, [2, 5]),
    "one cycle": lambda o: lr_scheduler.OneCycleLR(o, 0.1, 50),
    "restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3),
    "plateau": lambda o: lr_scheduler.ReduceLROnPlateau(o),
    "sequence": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o, 0.1), lr_scheduler.CosineAnnealingLR(o, 9)], [3]
    ),
}


@pytest.mark.parametrize("build", SCHEDULERS.values(), ids=SCHEDULERS)
def test_schedulers_of_torch_continue(tmp_path: Path, build: Callable[..., Any]) -> None:
    def rates(count: int) -> list[float]:
        found = []
        for _ in range(count):
            optimizer.step()
            scheduler.step(*[1.0] * isinstance(scheduler, lr_scheduler.ReduceLROnPlateau))
            found.append(optimizer.param_groups[0]["lr"])
        return found

    def build_all() -> tuple[torch.optim.Optimizer, Any, TrainingState]:
        model = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
        scheduler = build(optimizer)
        state = TrainingState(model=model, optimizer=optimizer, scheduler=scheduler)
        return optimizer, scheduler, state

    optimizer, scheduler, state = build_all()
    rates(4)
    state.save(tmp_path / "state")
    expected = rates(14)
    optimizer, scheduler, state = build_all()
    state.load(tmp_path / "state")
    assert rates(14) == expected
    optimizer, scheduler, state = build_all()
    assert rates(14) != expected


def test_a_state_is_not_saved_within_a_window(path: Path) -> None:
    run = Run()
    state = TrainingState(**run.parts())
    message = (
        r"end of a window, but gradients are pending \({}, the first of model {}\) and would be "
        r"lost\. Save after optimizer\.step\(\) and optimizer\.zero_grad\(set_to_none=True\)"
    )
    run.model(torch.ones(2, 6)).sum().backward()
    with pytest.raises(TrainingStateError, match=message.format(4, r"0\.weight")):
        state.save(path)
    run.optimizer.zero_grad(set_to_none=False)  # AdamW decays a parameter whose gradient is 0
    run.model[0].weight.grad = None
    with pytest.raises(TrainingStateError, match=message.format(3, r"0\.bias")):
        state.save(path)
    assert path.read_bytes() == saved()
    run.optimizer.zero_grad()
    state.save(path)


def test_loading_ends_a_window_that_was_left_open(path: Path) -> None:
    whole = everything(advanced(Run(), 5))
    run = Run()
    run.model(torch.ones(2, 6)).sum().backward()
    with pytest.raises(TrainingStateError, match="more is absent in the file and Records here"):
        TrainingState(**run.parts(), more=Records()).load(path)
    assert run.model[0].weight.grad is not None  # a refused load leaves it alone
    TrainingState(**run.parts()).load(path)
    assert run.model[0].weight.grad is None
    assert everything(advanced(run, 1)) == whole


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_generators_and_parts_on_cuda_continue(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(0.1).cuda(), capturable=True)
    state = TrainingState(model=model, optimizer=optimizer)

    def trained() -> Any:
        for _ in range(3):
            model(torch.randn(8, 4, device="cuda")).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        draws = [torch.rand(3, device=f"cuda:{i}") for i in range(torch.cuda.device_count())]
        tensors = [*model.parameters(), *draws, *optimizer.state[model[0].weight].values()]
        return frozen([tensor.cpu() for tensor in tensors])

    start = trained()
    state.save(tmp_path / "state")
    expected = trained()
    torch.cuda.manual_seed_all(5)
    assert trained() != expected
    state.load(tmp_path / "state")
    assert trained() == expected != start


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `killed_run` reports, and the files of its two runs."""
    if not hasattr(os, "fork"):
        pytest.skip("needs fork and SIGKILL")
    directory = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-m", "tests.gradstep.killed_run", str(directory), "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    report |= {name: _state_file.read(directory / name) for name in ("whole", "killed")}
    return report


def test_a_run_killed_ten_times_ends_with_the_bits_of_an_undisturbed_one(
    killed: dict[str, Any],
) -> None:
    kills = killed["run"]["kills"]
    assert [kill["signal"] for kill in kills] == [signal.SIGKILL] * KILLS
    assert killed["run"]["last"]["place"] == "end"
    kinds = Counter(kill["kind"] for kill in kills)
    assert kinds == {"training": 4, "saving": 3, "writing": 3}
    assert any(len(kill["left"]) == 3 for kill in kills)  # some within the writing of a file
    assert all(len(kill["left"]) <= 3 for kill in kills)  # and what they leave does not pile up
    whole = killed["whole"]["parts"]
    assert frozen(killed["killed"]) == frozen(killed["whole"])
    assert frozen(whole["model"]) != frozen(Run().model.state_dict())
    rows = whole["records"]["rows"]
    assert [row["window"] for row in rows] == list(range(1, 25))
    assert {row["accepted"] for row in rows} == {True, False}


def test_a_save_killed_at_any_line_leaves_the_old_file_or_the_new(killed: dict[str, Any]) -> None:
    found = [kill["found"] for kill in killed["saves"]]
    assert {kill["signal"] for kill in killed["saves"]} == {signal.SIGKILL}
    changed = found.index("after")
    assert found == ["before"] * changed + ["after"] * (len(found) - changed)
    assert {len(kill["left"]) for kill in killed["saves"]} == {1, 2}
