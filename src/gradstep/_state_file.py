"""One file for one state: written whole or not at all, and read only when it is whole."""

import glob
import hashlib
import os
import secrets
import shutil
import struct
import zipfile
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import torch

Place = str | os.PathLike[str]

MAGIC = b"gradstep state\r\n"  # a transfer that rewrites line ends breaks it
VERSION = 1
HEADER = struct.Struct("<16sIQ32s")  # magic, version, bytes of payload, their SHA-256


class TrainingStateError(RuntimeError):
    """A training state cannot be saved now, or a file cannot be loaded into this run.

    When it is raised by `load`, no part and no random generator has been changed, unless
    the message names a part that could not be put back.
    """

    __module__ = "gradstep"  # the name that a reader of a traceback can import


def write(path: Place, document: dict[str, Any]) -> None:
    """Replace the file at `path` by `document` in one indivisible step."""
    target = Path(os.path.realpath(path))  # through a link, to the file that it names
    if target.exists() and not target.is_file():  # a device or a pipe would be replaced, too
        raise TrainingStateError(
            f"{path} is there and is no regular file. Pass the path of a file. Nothing was changed."
        )
    _remove_remains(target)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        with open(partial, "xb") as file:
            _fill(file, document)
            file.flush()
            os.fsync(file.fileno())  # the contents reach the disk before the name does
        if target.exists():
            shutil.copymode(target, partial)
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        _sync_directory(target.parent)


def read(path: Place) -> dict[str, Any]:
    """The document of the file at `path`, or an error that says what is wrong with it."""
    if os.path.isdir(path):
        raise TrainingStateError(f"{path} is a directory. Pass the file that save() was given.")
    with open(path, "rb") as file:
        fault = _fault(file)
        if fault:
            raise TrainingStateError(f"{path} {fault} Nothing was changed.")
        try:
            return _document(file)
        except Exception as error:  # whatever bytes that are no state of ours make torch raise
            raise TrainingStateError(
                f"{path} is whole, but torch cannot read it back here: {error}. Continue with the "
                "devices and the torch version that saved it. Nothing was changed."
            ) from error


def _remove_remains(target: Path) -> None:
    """Remove what killed processes left of this file."""
    pattern = f".{glob.escape(target.name)}.{'[0-9a-f]' * 8}.partial"
    for remains in target.parent.glob(pattern):
        with suppress(OSError):  # another process was faster
            remains.unlink()


class _Digested:
    """A file for `torch.save` that digests what passes and remembers what failed."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.digest = hashlib.sha256()
        self.size = 0
        self.failure: OSError | None = None

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self.size += len(data)
        try:
            return self.file.write(data)
        except OSError as error:
            self.failure = error
            raise

    def flush(self) -> None:
        self.file.flush()


def _fill(file: BinaryIO, document: dict[str, Any]) -> None:
    file.write(bytes(HEADER.size))
    payload = _Digested(file)
    try:
        torch.save(document, payload)  # type: ignore[arg-type]
    except RuntimeError as error:  # in which torch hides a full disk
        raise payload.failure or error from None
    file.seek(0)
    file.write(HEADER.pack(MAGIC, VERSION, payload.size, payload.digest.digest()))


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _fault(file: BufferedReader) -> str | None:
    """What is wrong with the bytes of a file, and the cure; None where nothing is."""
    start = file.read(HEADER.size)
    held = os.fstat(file.fileno()).st_size - HEADER.size
    if not start:
        return "is empty. Load an earlier state."
    if not MAGIC.startswith(start[: len(MAGIC)]):
        return f"is no training state of gradstep: it begins with {start[: len(MAGIC)]!r}."
    if held < 0:
        return f"is truncated: it ends after {len(start)} bytes. Load an earlier state."
    _, version, size, digest = HEADER.unpack(start)
    if version != VERSION:
        return f"has format {version}, this gradstep reads format {VERSION}. Use its version."
    if held != size:
        return f"is damaged: it should hold {size} bytes and holds {held}. Load an earlier state."
    if hashlib.file_digest(file, "sha256").digest() != digest:
        return "is damaged: its contents do not match its checksum. Load an earlier state."
    return None


def _document(file: BinaryIO) -> dict[str, Any]:
    with zipfile.ZipFile(file) as archive:
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
            raise ValueError("it is compressed, so its size in memory is unknown")
    file.seek(HEADER.size)
    document = torch.load(file, weights_only=True)  # data only: no code of a stranger runs
    if not isinstance(document, dict) or document.keys() != {"structure", "parts", "random"}:
        raise ValueError("it lacks the structure, the parts or the random state")
    structure = document["structure"]
    if not isinstance(structure, dict) or {
        *map(type, structure),
        *map(type, structure.values()),
    } - {str}:
        raise ValueError(f"its structure is {structure!r:.60}, not the kinds of parts by name")
    if not isinstance(document["parts"], dict):
        raise ValueError(f"its parts are {document['parts']!r:.60}, not states by name")
    return document
