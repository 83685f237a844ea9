"""Shards written and read by `torch.distributed.checkpoint`, without the code it would run."""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.distributed.checkpoint import filesystem, metadata
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

PATHS = {"PosixPath", "WindowsPath"}
KNOWN = {  # what the metadata of shards is built from
    metadata.__name__: {
        "Metadata",
        "TensorStorageMetadata",
        "TensorProperties",
        "ChunkStorageMetadata",
        "MetadataIndex",
        "StorageMeta",
        "_MEM_FORMAT_ENCODING",
    },
    filesystem.__name__: {"_StorageInfo"},
    "torch.serialization": {"_get_layout"},
    "torch": {"Size"},  # and dtypes
    "pathlib": PATHS,
    "pathlib._local": PATHS,
}


def save_shards(shards: dict[str, Tensor], folder: Path) -> None:
    """Write the shards of all ranks; a collective."""
    with _first_error():
        save(shards, storage_writer=filesystem.FileSystemWriter(folder))


def load_shards(shards: dict[str, Tensor], folder: Path) -> None:
    """Fill the shards of this rank, whichever ranks have written them; a collective."""
    with _first_error():
        load(shards, storage_reader=_Reader(folder))


@contextmanager
def _first_error() -> Iterator[None]:
    """DCP collects the errors of all ranks, in one that is no `Exception`."""
    try:
        yield
    except CheckpointException as error:
        raise next(iter(error.failures.values()))[0] from error


class SafeUnpickler(pickle.Unpickler):
    """DCP would unpickle anything: here no code of a stranger runs."""

    def find_class(self, module: str, name: str) -> Any:
        dtype = module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        if dtype or name in KNOWN.get(module, ()):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} does not belong into metadata")


class _Reader(filesystem.FileSystemReader):
    def read_metadata(self, *args: Any, **kwargs: Any) -> metadata.Metadata:
        with open(Path(self.path, ".metadata"), "rb") as file:
            found = cast(metadata.Metadata, SafeUnpickler(file).load())
        found.storage_meta = found.storage_meta or metadata.StorageMeta()
        found.storage_meta.load_id = self.load_id
        return found
