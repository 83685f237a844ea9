"""A data loader with a cursor: small, seeded, and continued exactly where it stopped."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import default_collate

from ._arguments import integer_from

__all__ = ["Batches"]


class Batches:
    """Microbatches of a data set in an order that seed and epoch decide, with a cursor.

    Iterating starts at the cursor and stops at the end of its epoch, with a short batch
    where the batch size does not divide the number of samples; the next iteration is the
    next epoch. A batch counts as consumed once it is handed out, and nothing is read
    ahead, so that between two windows the cursor tells exactly what has been trained on.

    The order of an epoch depends on the seed, the epoch and the number of samples only: no
    random generator of the process is read or moved. Random augmentation inside the data
    set draws from the process's generators, which
    [`TrainingState`][gradstep.TrainingState] keeps.

    A `torch.utils.data.DataLoader` has no cursor, and its workers read ahead. Keep it and
    its speed by taking torchdata's `StatefulDataLoader`, which has the same signature and
    `state_dict()`, as the data part; or pass its data set and `collate_fn` here.

    Args:
        data: A tensor or a tuple of tensors of equal length, whose first dimension counts
            the samples; or any data set with a length and integer indices.
        batch_size: Samples in a batch, at least 1.
        seed: Shuffles each epoch anew, at least 0; `None` keeps the order of the data.
        collate_fn: Makes a batch of a list of samples of a data set. Tensors are indexed
            instead.

    Raises:
        TypeError: `data` has no length, or `batch_size` or `seed` is no integer.
        ValueError: `data` is empty, its tensors have different lengths, or `batch_size` or
            `seed` is too small.

    Examples:
        >>> import torch, gradstep
        >>> batches = gradstep.Batches(torch.arange(5), batch_size=2, seed=None)
        >>> iterator = iter(batches)
        >>> next(iterator), next(iterator)
        (tensor([0, 1]), tensor([2, 3]))
        >>> batches.state_dict()
        {'epoch': 0, 'batch': 2, 'samples': 5, 'batch_size': 2, 'seed': None}
        >>> again = gradstep.Batches(torch.arange(5), batch_size=2, seed=None)
        >>> again.load_state_dict(batches.state_dict())
        >>> list(again), again.epoch
        ([tensor([4])], 1)
    """

    def __init__(
        self,
        data: Any,
        batch_size: int,
        *,
        seed: int | None,
        collate_fn: Callable[[list[Any]], Any] = default_collate,
    ) -> None:
        self._data = data
        self._samples = _sample_count(data)
        self._batch_size = integer_from(1, "batch_size", batch_size)
        self._seed = None if seed is None else integer_from(0, "seed", seed)
        self._collate = collate_fn
        self._epoch = 0
        self._batch = 0  # the next one of the epoch, always below len(self)

    @property
    def epoch(self) -> int:
        """The epoch of the next batch: it moves on as the last batch of one is handed out."""
        return self._epoch

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return math.ceil(self._samples / self._batch_size)

    def __iter__(self) -> Iterator[Any]:
        """The rest of the cursor's epoch."""
        epoch = self._epoch
        order = self._order(epoch)
        while self._epoch == epoch:
            start = self._batch * self._batch_size
            batch = self._take(order[start : start + self._batch_size].tolist())
            self._batch += 1
            if self._batch == len(self):
                self._epoch, self._batch = epoch + 1, 0
            yield batch

    def state_dict(self) -> dict[str, int | None]:
        """The cursor, and what it is a cursor of."""
        return {"epoch": self._epoch, "batch": self._batch, **self._identity()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue at a cursor that `state_dict()` gave.

        Args:
            state_dict: The cursor. It must be one of as many samples, the same batch size
                and the same seed.

        Raises:
            TypeError: `state_dict` is no dict, or its numbers are none. Nothing is changed.
            ValueError: It is a cursor of other data, or none at all. Nothing is changed.
        """
        here = self._identity()
        if not isinstance(state_dict, dict):
            raise TypeError(
                f"state_dict must be a dict, got {state_dict!r:.60} of type "
                f"{type(state_dict).__name__}. Pass what state_dict() returned."
            )
        if state_dict.keys() != self.state_dict().keys():
            raise ValueError(
                f"state_dict must hold {', '.join(self.state_dict())}, got "
                f"{', '.join(map(str, state_dict)) or 'nothing'}. Pass what state_dict() returned."
            )
        for name, value in here.items():
            if state_dict[name] != value:
                raise ValueError(
                    f"state_dict is a cursor of other data: its {name} is {state_dict[name]}, here "
                    f"it is {value}. Build Batches with the data, batch_size and seed of the run "
                    "that saved it."
                )
        epoch = integer_from(0, "epoch of state_dict", state_dict["epoch"])
        batch = integer_from(0, "batch of state_dict", state_dict["batch"])
        if batch >= len(self):
            raise ValueError(f"batch of state_dict must be below {len(self)}, got {batch}.")
        self._epoch, self._batch = epoch, batch

    def _identity(self) -> dict[str, int | None]:
        return {"samples": self._samples, "batch_size": self._batch_size, "seed": self._seed}

    def _order(self, epoch: int) -> NDArray[np.int64]:
        if self._seed is None:
            return np.arange(self._samples)
        # of the pair, not of the sum: seed 1 in epoch 0 must not be seed 0 in epoch 1
        return np.random.default_rng([self._seed, epoch]).permutation(self._samples)

    def _take(self, indices: list[int]) -> Any:
        if isinstance(self._data, Tensor):
            return self._data[indices]
        if _is_columns(self._data):
            return tuple(column[indices] for column in self._data)
        return self._collate([self._data[index] for index in indices])


def _is_columns(data: Any) -> bool:
    return isinstance(data, tuple) and all(isinstance(column, Tensor) for column in data)


def _looks_like_columns(data: Any) -> bool:
    """Whether somebody meant columns: few of them, tensors or arrays, each of many samples."""
    if isinstance(data, Mapping):
        return True
    columns = isinstance(data, (tuple, list)) and 1 <= len(data) <= 4
    return columns and all(isinstance(c, (Tensor, np.ndarray)) and c.ndim for c in data)


def _sample_count(data: Any) -> int:
    if _looks_like_columns(data) and not _is_columns(data):
        raise TypeError(
            f"data must be a tensor, a tuple of tensors or a data set of samples, got a "
            f"{type(data).__name__} of {len(data)} columns. Pass a tuple of tensors, say "
            "(torch.as_tensor(inputs), torch.as_tensor(targets))."
        )
    columns: Sequence[Any] = data if _is_columns(data) and data else [data]
    try:
        lengths = {len(column) for column in columns}
    except TypeError as error:  # no length; a tensor without dimensions
        raise TypeError(
            f"data must have a length, got {type(data).__name__}: {error}. Pass tensors, or a data "
            "set with __len__ and __getitem__."
        ) from error
    if len(lengths) > 1:
        raise ValueError(
            f"data must be tensors of one length, got {[len(column) for column in columns]}. Their "
            "first dimension counts the samples."
        )
    if lengths == {0}:
        raise ValueError("data must hold at least one sample, got none.")
    return lengths.pop()
