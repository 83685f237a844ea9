"""The file of a training state: written whole or not at all; damage and forgery refused."""

import errno
import io
import os
import pickle
import stat
import tempfile
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradstep import TrainingState, TrainingStateError, _state_file

from .saved_run import (
    NOTHING,
    assert_refused,
    other,
    saved,
    saved_in,
    unchanged,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return saved_in(tmp_path)


def test_a_file_reaches_the_disk_before_its_name(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []

    def watched(name: str, describe: Callable[..., Any]) -> None:
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a: (done.append((name, describe(*a))), real(*a))[1])

    watched("fsync", lambda file: stat.S_ISDIR(os.fstat(file).st_mode))
    watched("replace", lambda _, target: Path(target).name)
    TrainingState(**other().parts()).save(path)
    expected = [("fsync", False), ("replace", "state"), ("fsync", True)]
    assert done == (expected if os.name == "posix" else expected[:2])


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_save_that_fails_keeps_the_previous_file(
    path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="broken disk"):
        TrainingState(**other().parts()).save(path)
    assert path.read_bytes() == saved()
    assert os.listdir(path.parent) == ["state"]


@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the size of files")
def test_a_full_disk_is_reported_as_such(path: Path) -> None:
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):  # not torch's RuntimeError about it
            TrainingState(**other().parts()).save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == saved()
    assert os.listdir(path.parent) == ["state"]


def test_an_error_of_the_system_is_not_hidden_by_torch() -> None:
    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            if len(data) > 1000:
                raise OSError(errno.ENOSPC, "no space left")
            return super().write(data)

    with pytest.raises(OSError, match="no space left"):
        _state_file._fill(Full(), {"weights": torch.ones(1000)})


def test_a_save_removes_the_remains_of_its_own_file_only(path: Path) -> None:
    remains = path.with_name(".state.0123abcd.partial")
    others = [".state.best.0123abcd.partial", ".other.0123abcd.partial", ".state.partial"]
    for name in (remains.name, *others):
        path.with_name(name).write_bytes(b"half")
    TrainingState(**other().parts()).save(path)
    assert sorted(os.listdir(path.parent)) == sorted([*others, "state"])


def test_a_save_follows_links_and_leaves_rights_to_the_process(path: Path) -> None:
    link = path.with_name("latest")
    link.symlink_to(path.name)
    TrainingState(**other().parts()).save(str(link))
    assert link.is_symlink()
    plain = path.with_name("plain")
    plain.write_bytes(b"")
    assert path.stat().st_mode == plain.stat().st_mode
    with unchanged(other()):
        TrainingState(**other().parts()).load(path)


DAMAGE = st.one_of(
    st.tuples(st.just("cut"), st.integers(0, 2**20)),
    st.tuples(st.just("flip"), st.integers(0, 2**24)),
    st.tuples(st.just("zero"), st.integers(0, 2**20)),
    st.tuples(st.just("drop"), st.integers(0, 2**20)),
    st.tuples(st.just("grow"), st.integers(1, 99)),
)


def damaged(data: bytes, kind: str, number: int) -> bytes:
    place = number % len(data)
    if kind == "flip":
        byte = data[place] ^ 1 << number // len(data) % 8
        return data[:place] + bytes([byte]) + data[place + 1 :]
    return {
        "cut": data[:place],
        "zero": data[:place] + bytes(len(data[place:])),
        "drop": data[:place] + data[place + 1 :],
        "grow": data + bytes(number),
    }[kind]


@given(damage=DAMAGE)
def test_a_damaged_file_is_refused(damage: tuple[str, int]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "state")
        path.write_bytes(damaged(saved(), *damage))
        assert path.read_bytes() != saved()
        assert_refused(path, other(), NOTHING)


def test_every_bit_of_the_header_counts(path: Path) -> None:
    for bit in range(8 * _state_file.HEADER.size):
        path.write_bytes(damaged(saved(), "flip", bit // 8 + bit % 8 * len(saved())))
        with pytest.raises(TrainingStateError, match=NOTHING):
            _state_file.read(path)
    path.write_bytes(saved())
    _state_file.read(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda saved: b"", r"state is empty\. Load an earlier state\."),
        (lambda saved: b"PK\3\4" + saved, r"no training state of gradstep: it begins with b'PK"),
        (lambda saved: saved[:30], r"is truncated: it ends after 30 bytes\. Load an earlier"),
        (lambda saved: saved[:-9], r"is damaged: it should hold \d+ bytes and holds \d+\. Load"),
        (lambda saved: saved[:-9] + b"123456789", r"do not match its checksum\. Load an earlier"),
        (lambda saved: saved[:16] + b"\2" + saved[17:], r"has format 2, this gradstep reads for"),
    ],
)
def test_a_message_says_what_is_wrong_with_a_file(
    path: Path, data: Callable[[bytes], bytes], message: str
) -> None:
    path.write_bytes(data(saved()))
    assert_refused(path, other(), message)


def test_a_directory_is_refused_and_a_missing_file_is_missing(tmp_path: Path) -> None:
    assert_refused(tmp_path, other(), r"is a directory\. Pass the file that save\(\) was given\.")
    with unchanged(other()), pytest.raises(FileNotFoundError, match="nowhere"):
        TrainingState(**other().parts()).load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        TrainingState(**other().parts()).save(tmp_path / "nowhere" / "state")


class Exploit:
    """Makes a directory when it is unpickled by someone who trusts the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def with_valid_header(payload: bytes) -> bytes:
    digest = sha256(payload).digest()
    header = (_state_file.MAGIC, _state_file.VERSION, len(payload), digest)
    return _state_file.HEADER.pack(*header) + payload


def test_a_file_that_was_forged_runs_no_code(path: Path) -> None:
    target = path.with_name("exploited")
    buffer = io.BytesIO()
    torch.save({"structure": Exploit(target), "parts": {}, "random": {}}, buffer)
    path.write_bytes(with_valid_header(buffer.getvalue()))
    assert_refused(path, other(), r"is whole, but torch cannot read it back here")
    assert not target.exists()
    torch.load(io.BytesIO(buffer.getvalue()), weights_only=False)
    assert target.exists()  # whoever trusts it is exploited


def test_other_contents_below_a_valid_header_are_refused(path: Path) -> None:
    bomb, other_document = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10**6))
    torch.save({"model": {}}, other_document)
    for payload, message in (
        (bomb.getvalue(), r"it is compressed, so its size in memory is unknown"),
        (other_document.getvalue(), r"it lacks the structure, the parts or the random state"),
        (pickle.dumps(1), r"File is not a zip file"),
        (b"", r"File is not a zip file"),
    ):
        path.write_bytes(with_valid_header(payload))
        assert_refused(path, other(), message)
