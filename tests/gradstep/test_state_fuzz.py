"""A file with a valid header and strange contents: refused whole, or loaded whole."""

import copy
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from gradstep import TrainingState, TrainingStateError, _state_file

from .killed_run import Run
from .saved_run import everything, frozen, saved
from .test_state_file import with_valid_header

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.just([]),
    st.just({}),
    st.sampled_from([torch.zeros(3), torch.tensor(1), torch.ones(2, 3), torch.zeros(5000).byte()]),
    st.sampled_from([torch.full((4, 4), torch.nan), torch.zeros(1, dtype=torch.complex64)]),
)
Path_ = tuple[Any, ...]


def places(value: Any, path: Path_ = ()) -> list[Path_]:
    """Where each value of a document stands, containers included."""
    found = [path] if path else []
    if isinstance(value, dict | list | tuple):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, entry in entries:
            found += places(entry, (*path, key))
    return found


def replaced(value: Any, path: Path_, new: Any) -> Any:
    """A copy of a document with another value in one place."""
    if not path:
        return new
    key, *rest = path
    twin = list(value) if isinstance(value, tuple) else copy.copy(value)
    twin[key] = replaced(value[key], tuple(rest), new)
    return tuple(twin) if isinstance(value, tuple) else twin


def changed(value: Any, path: Path_, change: Callable[[list[tuple[Any, Any]], Any], Any]) -> Any:
    """A copy of a document in which the entries around one place are others."""
    *above, key = path
    holder = value
    for step in above:
        holder = holder[step]
    if isinstance(holder, dict):
        return replaced(value, tuple(above), dict(change(list(holder.items()), key)))
    entries = change(list(enumerate(holder)), key)
    return replaced(value, tuple(above), type(holder)(entry for _, entry in entries))


def without(entries: list[tuple[Any, Any]], key: Any) -> list[tuple[Any, Any]]:
    return [(name, entry) for name, entry in entries if name != key]


def renamed(entries: list[tuple[Any, Any]], key: Any) -> list[tuple[Any, Any]]:
    return [(f"{name}?" if name == key else name, entry) for name, entry in entries]


def document() -> dict[str, Any]:
    return torch.load(io.BytesIO(saved()[_state_file.HEADER.size :]), weights_only=True)


PLACES = places(document())


def assert_whole_or_refused(data: bytes) -> bool:
    """Load the file into another run: afterwards it is as before, or holds all of the file."""
    run = Run(seed=1)
    before = everything(run)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "state")
        path.write_bytes(data)
        try:
            TrainingState(**run.parts()).load(path)
        except TrainingStateError as error:
            refusal = str(error)
        else:
            held = torch.load(io.BytesIO(data[_state_file.HEADER.size :]), weights_only=True)
            assert {name: frozen(part.state_dict()) for name, part in run.parts().items()} == {
                name: frozen(state) for name, state in held["parts"].items()
            }
            return True
    assert str(path) in refusal
    assert refusal.endswith("Nothing was changed.")
    assert everything(run) == before
    return False


@settings(max_examples=100, deadline=None)
@given(place=st.sampled_from(PLACES), new=LEAVES, change=st.sampled_from([None, without, renamed]))
@example(place=("parts", "scheduler", "last_epoch"), new=None, change=renamed)
def test_a_document_with_one_strange_value_is_refused_or_loaded_whole(
    place: Path_, new: Any, change: Any
) -> None:
    whole = document()
    strange = changed(whole, place, change) if change else replaced(whole, place, new)
    buffer = io.BytesIO()
    torch.save(strange, buffer)
    loaded = assert_whole_or_refused(with_valid_header(buffer.getvalue()))
    event("loaded" if loaded else "refused")


@settings(max_examples=100, deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), new=st.binary(min_size=1, max_size=8))
@example(place=0.0, new=b"PK\3\4")  # the same bytes: loaded
def test_damage_below_a_valid_header_is_refused_or_loaded_whole(place: float, new: bytes) -> None:
    payload = saved()[_state_file.HEADER.size :]
    start = int(place * len(payload))
    damaged = payload[:start] + new + payload[start + len(new) :]
    loaded = assert_whole_or_refused(with_valid_header(damaged))
    event("loaded" if loaded else "refused")


def test_the_unchanged_document_is_loaded() -> None:
    buffer = io.BytesIO()
    torch.save(document(), buffer)
    assert assert_whole_or_refused(with_valid_header(buffer.getvalue()))
