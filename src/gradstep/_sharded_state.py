"""The state of a sharded run: one directory, written and read by all ranks together.

`state` in it is a state file, which names the folder beside it with the shards. It is replaced
last, so the directory always holds the previous state or the new one, each whole. DCP writes
and reads the shards; everything else lies in the state file.
"""

import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch.distributed as dist

from ._dcp import load_shards, save_shards
from ._parts import Stateful, copied, difference
from ._shards import apart, put_together
from ._state_file import Place, TrainingStateError, _sync_directory, read, write

T = TypeVar("T")


@contextmanager
def together(outcome: str) -> Iterator[None]:
    """What one rank cannot do fails on all of them, before any goes on."""
    fault: Exception | None = None
    try:
        yield
    except Exception as error:
        fault = error
    faults = _gathered(fault and f"{type(fault).__name__}: {fault}")
    if fault is not None:
        raise fault
    rank = next((rank for rank, text in enumerate(faults) if text), None)
    if rank is not None:
        raise TrainingStateError(f"rank {rank} failed with {faults[rank]} {outcome}".rstrip())


def write_together(
    path: Place, document: Callable[[], dict[str, Any]], parts: Mapping[str, Stateful]
) -> None:
    """Save the shards of all ranks, then replace the state file that names them."""
    directory = Path(os.path.realpath(path))
    folder = directory / _gathered(secrets.token_hex(4))[0]
    with together(f"{path} is as before."):
        own = document()
        plain, shards = apart(own["parts"], parts)
        if dist.get_rank() == 0:
            _make(directory)
    with together(f"{path} is as before."):
        save_shards(shards, folder)
        digests = {file.name: _digest(file) for file in _written_here(folder)}
    here = {"parts": copied(plain), "random": own["random"], "files": digests}
    everything = _gathered({"structure": own["structure"], **here})
    with together(f"{path} is as before."):
        _refuse_different(everything)
    with together(f"{path} is as before, or its new state is not safely on the disk."):
        if dist.get_rank() == 0:
            files = {name: digest for held in everything for name, digest in held["files"].items()}
            held_here = {"folder": folder.name, "files": files, "parts": _merged(everything)}
            random = [held["random"] for held in everything]
            _sync_directory(folder)
            file = {"structure": own["structure"], "parts": held_here, "random": random}
            write(directory / "state", file)
            _remove_all_but(folder)


def read_together(
    path: Place, check: Callable[[dict[str, str]], None], parts: Mapping[str, Stateful]
) -> tuple[dict[str, Any], Any]:
    """The states of this rank's parts, and that of its generators or None, unless all refuse."""
    outcome = "Nothing was changed."
    with together(outcome):
        directory = Path(path)
        if directory.is_file():
            raise TrainingStateError(
                f"{path} is a file, which a run saves whose model is not sharded. {outcome}"
            )
        document = read(directory / "state")
        saved = document["parts"]
        if "folder" not in saved:
            raise TrainingStateError(f"{path} holds no sharded state. {outcome}")
        check(document["structure"])
        folder = directory / saved["folder"]
        _check_files(path, folder, saved["files"])
        own = {name: _own(path, name, held) for name, held in saved["parts"].items()}
        states, shards = put_together(own, parts)
    with together(outcome):
        try:
            load_shards(shards, folder)
        except Exception as error:
            raise TrainingStateError(
                f"{path} is whole, but its shards cannot be read back here: {error}. Continue with "
                f"the torch version that saved it. {outcome}"
            ) from error
    random = document["random"]
    rank = dist.get_rank()
    return states, random[rank] if rank < len(random) else None


def _gathered(own: T) -> list[T]:
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, own)
    return found


def _make(directory: Path) -> None:
    if directory.is_file():
        raise TrainingStateError(f"{directory} is a file, a sharded run needs a directory.")
    directory.mkdir(exist_ok=True)
    _sync_directory(directory.parent)


def _refuse_different(everything: list[dict[str, Any]]) -> None:
    first = everything[0]["structure"]
    for rank, held in enumerate(everything):
        for place in {**first, **held["structure"]}:
            ours, theirs = first.get(place, "absent"), held["structure"].get(place, "absent")
            if ours != theirs:
                raise TrainingStateError(
                    f"ranks share one state, but {place} is {ours} on rank 0 and {theirs} on rank "
                    f"{rank}. Build the same parts on every rank."
                )


def _merged(everything: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Of each part one state where all ranks have the same, else one for each rank."""
    merged = {}
    for name, first in everything[0]["parts"].items():
        states = [held["parts"][name] for held in everything]
        same = all(difference(state, first, name) is None for state in states)
        merged[name] = [first] if same else states
    return merged


def _own(path: Place, name: str, held: list[Any]) -> Any:
    world = dist.get_world_size()
    if len(held) not in (1, world):
        raise TrainingStateError(
            f"{path} holds a {name} for each of {len(held)} ranks, got {world} ranks. Load it with "
            f"{len(held)} ranks, or save a {name} that is the same on every rank. Nothing was "
            "changed."
        )
    return held[0] if len(held) == 1 else held[dist.get_rank()]


def _digest(file: Path) -> str:
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _written_here(folder: Path) -> list[Path]:
    rank = dist.get_rank()
    return [*folder.glob(f"__{rank}_*"), *([folder / ".metadata"] if rank == 0 else [])]


def _check_files(path: Place, folder: Path, files: dict[str, str]) -> None:
    """Every file is read again by one of the ranks."""
    for name in sorted(files)[dist.get_rank() :: dist.get_world_size()]:
        file = folder / name
        fault = None if file.exists() else "is missing"
        if not fault and _digest(file) != files[name]:
            fault = "does not match its checksum"
        if fault:
            raise TrainingStateError(
                f"{path} is damaged: {folder.name}/{name} {fault}. Load an earlier state. Nothing "
                "was changed."
            )


def _remove_all_but(folder: Path) -> None:
    """Remove the shards of the previous state, and what killed saves have left."""
    for other in folder.parent.iterdir():
        hexadecimal = len(other.name) == 8 and set(other.name) <= set("0123456789abcdef")
        if other != folder and hexadecimal and other.is_dir():
            shutil.rmtree(other, ignore_errors=True)
