"""States of sharded runs: the same bits again, on as many ranks or on others, or nothing."""

import hashlib
import io
import os
import pickle
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.optim import AdamW, lr_scheduler

import gradstep
from gradstep import TrainingState, TrainingStateError, _dcp, _sharded_state, _state_file

from .saved_run import frozen
from .sharded import Net, both, fsdp, local, mesh_of, on_ranks, tensor_parallel, whole

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


class Cursor:
    """A part of which each rank has its own state."""

    def __init__(self, place: int) -> None:
        self.place = place

    def state_dict(self) -> dict[str, int]:
        return vars(self).copy()

    def load_state_dict(self, state: dict[str, int]) -> None:
        if state["place"] < 0 and dist.get_rank() == 1:
            raise ValueError("not mine")
        vars(self).update(state)


class Run:
    """A sharded run; what happens in it depends on generators, which differ by rank."""

    def __init__(self, seed: int, build: Any = fsdp, sizes: Any = None, **more: Any) -> None:
        sizes = sizes or (dist.get_world_size(),)
        torch.manual_seed(seed)
        self.model = build(Net().double(), mesh_of(*sizes))
        torch.manual_seed(seed + dist.get_rank())
        random.seed(seed + dist.get_rank())
        self.optimizer = AdamW(self.model.parameters(), lr=0.1)
        self.scheduler = lr_scheduler.StepLR(self.optimizer, 2, 0.5)
        self.clocks = gradstep.Clocks()
        inputs = torch.randn(64, 8, generator=torch.Generator().manual_seed(3)).double()
        self.data = gradstep.Batches((inputs,), 8, seed=4)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** (seed + 2))
        self.more = more

    def parts(self) -> dict[str, Any]:
        names = ("model", "optimizer", "scheduler", "clocks", "data", "scaler")
        return {**{name: getattr(self, name) for name in names}, **self.more}

    def state(self) -> TrainingState:
        return TrainingState(**self.parts())

    def advanced(self, count: int) -> "Run":
        for _ in range(count):
            (inputs,) = next(iter(self.data))
            noise = torch.rand_like(inputs) * random.random()
            self.model(inputs + noise).square().sum().backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.scheduler.step()
            self.clocks.accepted += 1
        return self

    def everything(self) -> dict[str, Any]:
        """All but the generators; tensors whole, so that worlds can be compared."""
        return {name: frozen(gathered(part.state_dict())) for name, part in self.parts().items()}

    def here(self) -> list[Any]:
        """The generators, and what this rank holds, without a collective."""
        shards = [frozen(local(p)) for p in self.model.parameters()]
        return [frozen([random.getstate(), torch.get_rng_state()]), shards]


def gathered(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return whole(value)
    if isinstance(value, dict):
        return {key: gathered(entry) for key, entry in value.items()}
    return [gathered(entry) for entry in value] if isinstance(value, list | tuple) else value


@contextmanager
def nothing_changes(run: Run) -> Iterator[None]:
    before = run.everything(), run.here()
    yield
    assert (run.everything(), run.here()) == before


def saved(path: Path, build: Any = fsdp) -> list[Any]:
    run = Run(0, build).advanced(3)
    run.state().save(path)
    then = run.everything(), run.here()
    return [*then, run.advanced(3).everything(), run.here()]


def loaded(path: Path, build: Any = fsdp, sizes: Any = None) -> list[Any]:
    run = Run(1, build, sizes).advanced(1)
    fresh = run.here()[0]
    run.state().load(path)
    then = run.everything(), run.here()
    assert all(p.grad is None for p in run.model.parameters())
    return [*then, run.advanced(3).everything(), run.here(), fresh]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """A directory that two ranks saved, and what each of them had then and three windows on."""
    path = tmp_path_factory.mktemp("sharded") / "run"
    return path, on_ranks(2, saved, path)


@pytest.fixture
def path(original: tuple[Path, list[Any]], tmp_path: Path) -> Path:
    return Path(shutil.copytree(original[0], tmp_path / "run"))


def test_as_many_ranks_continue_with_the_same_bits(original: Any, path: Path) -> None:
    for before, after in zip(original[1], on_ranks(2, loaded, path), strict=True):
        assert after[:4] == before
        assert before[0] != before[2]  # it has moved
        assert before[1] != before[3]
    first, second = original[1]
    assert first[1] != second[1]  # generators and shards of their own


@pytest.mark.parametrize(
    ("build", "sizes"), [(fsdp, (1,)), (fsdp, (4,)), (both, (2, 2)), (tensor_parallel, (2,))]
)
def test_other_ranks_and_meshes_load_the_same_state(
    original: Any, path: Path, build: Any, sizes: Any
) -> None:
    world = torch.Size(sizes).numel()
    results = on_ranks(world, loaded, path, build, sizes)
    for rank, (state, (generators, _), *_, fresh) in enumerate(results):
        assert state == original[1][0][0]
        assert generators == (original[1][rank][1][0] if rank < 2 else fresh)


def test_a_tensor_parallel_state_of_two_ranks_is_loaded_by_others(tmp_path: Path) -> None:
    expected = on_ranks(2, saved, tmp_path / "run", tensor_parallel)[0][0]
    for sizes in ((1,), (4,)):
        results = on_ranks(sizes[0], loaded, tmp_path / "run", tensor_parallel, sizes)
        assert all(state == expected for state, *_ in results)


def meshed(path: Path) -> Any:
    run = Run(0, both, (2, 2)).advanced(2)
    run.state().save(path)
    run.state().save(path)  # over the first
    return run.everything()


def test_a_mesh_of_two_dimensions_is_saved_and_loaded_by_two_ranks(tmp_path: Path) -> None:
    expected = on_ranks(4, meshed, tmp_path / "run")[0]
    assert len(list((tmp_path / "run").iterdir())) == 2  # the state file and one folder
    assert [result[0] for result in on_ranks(2, loaded, tmp_path / "run")] == [expected] * 2


def own_cursors(path: Path) -> None:
    Run(0, cursor=Cursor(10 * dist.get_rank())).state().save(path)
    run = Run(0, cursor=Cursor(7))
    run.state().load(path)
    assert run.more["cursor"].place == 10 * dist.get_rank()


def refused(path: Path, message: str, **more: Any) -> str:
    run = Run(1, **more).advanced(1)
    with nothing_changes(run), pytest.raises(TrainingStateError, match=message) as caught:
        run.state().load(path)
    return str(caught.value)


def test_parts_that_differ_by_rank_need_as_many_ranks(tmp_path: Path) -> None:
    on_ranks(2, own_cursors, tmp_path / "run")
    message = on_ranks(1, refused_cursor, tmp_path / "run")[0]
    assert "holds a cursor for each of 2 ranks, got 1 ranks. Load it with 2 ranks" in message


def refused_cursor(path: Path) -> str:
    return refused(path, r"Nothing was changed\.", cursor=Cursor(5))


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def shard(path: Path) -> Path:
    return next(path.glob("*/__1_*"))


def unsharded(path: Path) -> None:
    model = Net()
    TrainingState(model=model, optimizer=AdamW(model.parameters())).save(path / "state")


class Evil:
    def __reduce__(self) -> Any:
        return os.abort, ()


def evil(path: Path) -> None:
    """Metadata that ends the process that builds it, under a right checksum."""
    file = next(path.glob("*/.metadata"))
    file.write_bytes(pickle.dumps(Evil()))
    document = _state_file.read(path / "state")
    document["parts"]["files"][".metadata"] = hashlib.sha256(file.read_bytes()).hexdigest()
    _state_file.write(path / "state", document)


DAMAGE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "shard": (lambda p: flip(shard(p)), r"__1_0\.distcp does not match its checksum"),
    "cut": (lambda p: os.truncate(shard(p), 100), r"__1_0\.distcp does not match its checksum"),
    "lost": (lambda p: shard(p).unlink(), r"__1_0\.distcp is missing"),
    "metadata": (lambda p: flip(next(p.glob("*/.metadata"))), r"metadata does not match"),
    "state": (lambda p: flip(p / "state"), "do not match its checksum"),
    "foreign": (lambda p: (p / "state").write_bytes(b"PK"), "is no training state of gradstep"),
    "file": (lambda p: (shutil.rmtree(p), p.touch()), "is a file, which a run saves whose model"),
    "evil": (evil, "abort does not belong into metadata"),
    "unsharded": (unsharded, "holds no sharded state"),
}


def all_refused(places: list[Path], messages: list[str]) -> list[str]:
    return [refused(*case) for case in zip(places, messages, strict=True)]


def test_a_damaged_directory_is_refused_by_every_rank(path: Path) -> None:
    places = [Path(shutil.copytree(path, path.parent / name)) for name in DAMAGE]
    for place, (spoil, _) in zip(places, DAMAGE.values(), strict=True):
        spoil(place)
    for texts in on_ranks(2, all_refused, places, [message for _, message in DAMAGE.values()]):
        assert all("Nothing was changed." in text for text in texts)


def others(path: Path) -> list[str]:
    """One rank only differs, and all refuse."""
    rank = dist.get_rank()
    run = Run(1)
    run.optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))]}) if rank else None
    with nothing_changes(run), pytest.raises(TrainingStateError) as caught:
        run.state().load(path)
    return str(caught.value)


def test_a_rank_that_was_built_differently_stops_all(path: Path) -> None:
    first, second = on_ranks(2, others, path)
    assert "belongs to a run that was built differently: optimizer group 1 parameter 0" in second
    assert first.startswith("rank 1 failed with TrainingStateError: ")


def half_loaded(path: Path) -> str:
    Run(0, cursor=Cursor(-1)).state().save(path)
    run = Run(1, cursor=Cursor(2)).advanced(1)
    before = run.everything(), run.here()
    with pytest.raises(TrainingStateError) as caught:
        run.state().load(path)
    assert (run.everything(), run.here()) == before
    return str(caught.value)


def test_what_one_rank_cannot_take_all_put_back(tmp_path: Path) -> None:
    first, second = on_ranks(2, half_loaded, tmp_path / "run")
    assert second.endswith("cursor refuses its state: not mine. Nothing was changed.")
    assert "rank 1 failed with ValueError: cursor refuses its state: not mine" in first


def not_saved(path: Path) -> list[str]:
    odd = Run(1, **({"more": Cursor(1)} if dist.get_rank() else {}))
    message = "more is absent on rank 0 and Cursor on rank 1. Build the same parts on every rank"
    with pytest.raises(TrainingStateError, match=message):
        odd.state().save(path)
    run = Run(1)
    run.model(torch.ones(8, 8).double()).sum().backward()
    if dist.get_rank() == 0:
        run.optimizer.zero_grad()
    with pytest.raises(TrainingStateError) as caught:
        run.state().save(path)
    return str(caught.value)


def test_what_one_rank_cannot_save_none_does(path: Path) -> None:
    before = (path / "state").read_bytes()
    first, second = on_ranks(2, not_saved, path)
    assert "gradients are pending (6, the first of model norm.weight)" in second
    assert first.startswith("rank 1 failed with TrainingStateError: a state is saved at the end")
    assert (path / "state").read_bytes() == before


POINTS = {
    "before the shards": (_sharded_state, "save_shards", False, 1),
    "after the shards": (_sharded_state, "save_shards", True, 1),
    "before the state file": (_sharded_state, "write", False, 0),
    "within the state file": (_state_file, "_fill", True, 0),
    "after the state file": (_sharded_state, "write", True, 0),
}


def killed(path: Path, module: Any, name: str, after: bool, rank: int) -> None:
    run = Run(1).advanced(1)
    original = getattr(module, name)

    def deadly(*arguments: Any, **options: Any) -> Any:
        result = original(*arguments, **options) if after else None
        if dist.get_rank() == rank:
            os.kill(os.getpid(), signal.SIGKILL)
        return result if after else original(*arguments, **options)

    setattr(module, name, deadly)
    run.state().save(path)


def found_then_saved(places: list[Path]) -> list[Any]:
    found = []
    for place in places:
        run = Run(1)
        run.state().load(place)
        found.append(run.everything())
        run.state().save(place)
    return found


def test_a_save_that_is_killed_leaves_the_old_state_or_the_new(original: Any, path: Path) -> None:
    places = [Path(shutil.copytree(path, path.parent / name)) for name in POINTS]
    for place, point in zip(places, POINTS.values(), strict=True):
        with pytest.raises(AssertionError, match="ended with -9"):
            on_ranks(2, killed, place, *point)
    found = on_ranks(2, found_then_saved, places)[0]
    old = original[1][0][0]
    assert [state == old for state in found] == [True, True, True, True, False]
    for place in places:  # what was left is removed by the next save
        assert len(list(place.iterdir())) == 2


def named(module: str, name: str) -> bytes:
    """A pickle of what `name` is in `module`."""
    strings = b"".join(b"\x8c" + bytes([len(t)]) + t.encode() for t in (module, name))
    return b"\x80\x04" + strings + b"\x93."


def test_metadata_builds_nothing_that_runs_code() -> None:
    known = _dcp.metadata.__name__
    assert _dcp.SafeUnpickler(io.BytesIO(named(known, "MetadataIndex"))).load()
    for module, name in (("os", "system"), ("builtins", "eval"), (known, "os.system")):
        evil = named(module, name)
        assert callable(pickle.loads(evil))  # which is how DCP itself reads its metadata
        with pytest.raises(pickle.UnpicklingError, match=f"{name} does not belong into metadata"):
            _dcp.SafeUnpickler(io.BytesIO(evil)).load()
