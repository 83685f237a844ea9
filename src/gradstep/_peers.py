"""The other processes: exchange a few numbers with them, and learn what became of them."""

import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any
from zlib import crc32

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, ProcessGroupGloo

GRACE = 2.0  # seconds in which a rank that is alive says so after a connection was lost
POLL = 0.05
WAITED = "waited"
GLOO = ("/gloo/", "Application timeout caused pair closure")  # its errors have no type

_calls: Counter[str] = Counter()  # every rank opens its connections equally often


class Peers:
    """Connections of their own between some ranks.

    What goes over them is small and on the host, whatever the backend of the model's groups is.
    Closing them wakes whoever waits for this rank, and leaves those groups as they are. The time
    limit is the one given to `init_process_group`.
    """

    def __init__(self, ranks: list[int]) -> None:
        self.rank, self.size = ranks.index(dist.get_rank()), len(ranks)
        store: Any = dist.distributed_c10d._get_default_store()
        self.limit: timedelta = store.timeout  # what init_process_group was given
        name = f"gradstep/{ranks[0]}/{self.size}/{crc32(str(ranks).encode())}"
        _calls[name] += 1
        self._store = PrefixStore(f"{name}/{_calls[name]}", store)
        try:
            self._connections: Any = ProcessGroupGloo(self._store, self.rank, self.size, self.limit)
        except RuntimeError as error:
            raise RuntimeError(
                f"rank {self.rank} waited {self.limit.total_seconds():g} s, the time limit of the "
                "process group, for the other ranks of the model to connect. Every rank has to "
                "call updates() equally often."
            ) from error

    def exchange(self, values: tuple[float, ...]) -> list[tuple[Any, ...]]:
        """One all-gather: the values of every rank, by rank. A synchronization point."""
        own = torch.tensor(values, dtype=torch.float64)
        rows = [torch.empty_like(own) for _ in range(self.size)]
        self._connections.allgather([rows], [own]).wait()
        return [tuple(map(_number, row.tolist())) for row in rows]

    def leave(self, word: str) -> None:
        """Say why, and close the connections: whoever waits for this rank learns it at once."""
        with suppress(RuntimeError):  # the store may be gone, with the rank that held it
            self._store.set(str(self.rank), word)
        self._connections = None

    def lost(self, window: int) -> RuntimeError:
        """The error of this rank when the connection to another one was lost."""
        self.leave(WAITED)
        words = self._last_words()
        reasons = [f"rank {rank} {word}" for rank, word in words.items() if word != WAITED]
        silent = [rank for rank in range(self.size) if rank != self.rank and rank not in words]
        limit = f"the time limit of the process group, {self.limit.total_seconds():g} s"
        if not reasons and silent:
            one = "" if len(silent) == 1 else "one of them was "
            reasons = [
                f"no sign of life from {named(silent)} within {GRACE:g} s: {one}killed, or later "
                f"than {limit}"
            ]
        elif not reasons:
            reasons = [f"all of them are alive, but one came later than {limit}"]
        return RuntimeError(
            f"rank {self.rank} stopped in window {window}, because another rank was lost: "
            f"{'; '.join(reasons)}. Nothing was updated in this window. Start the processes again."
        )

    def _last_words(self) -> dict[int, str]:
        """What the other ranks said when they left; one reason is enough to stop listening."""
        words: dict[int, str] = {}
        deadline = time.monotonic() + GRACE
        with suppress(RuntimeError):  # the store is gone
            while time.monotonic() < deadline:
                for rank in range(self.size):
                    if rank != self.rank and rank not in words and self._store.check([str(rank)]):
                        words[rank] = self._store.get(str(rank)).decode()
                if len(words) == self.size - 1 or set(words.values()) - {WAITED}:
                    break
                time.sleep(POLL)
        return dict(sorted(words.items()))


def is_lost_connection(error: BaseException) -> bool:
    """Whether a collective failed, of whichever group, rather than the code of this rank."""
    if not isinstance(error, RuntimeError):
        return False
    return isinstance(error, dist.DistError) or any(mark in str(error) for mark in GLOO)


def _number(value: float) -> int | float:
    """A count that went as a float is an integer again."""
    return int(value) if value.is_integer() else value


def named(numbers: list[int]) -> str:
    """`rank 1`, or `ranks 1, 3`."""
    return f"rank{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
