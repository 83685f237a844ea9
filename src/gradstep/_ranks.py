"""What the ranks that train one model agree on, before it is too late to turn back."""

import itertools
import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

import torch
from torch import Tensor
from torch.nn import Module

from ._arguments import NonfiniteGradientError
from ._peers import Peers, is_lost_connection, named
from ._readings import denominator, fingerprint, first_fault_or_sum
from ._wrappers import Team, Wrappers
from .objectives import Objective

Tails = Literal["raise", "empty"]


class Contribution(NamedTuple):
    """One forward and backward pass of this rank."""

    microbatch: Any
    divisor: float  # of its loss sum; infinite for a pass that only keeps in step with others
    last: bool


@dataclass(frozen=True)
class Window:
    """What this rank does in a window, and what all ranks know of it."""

    index: int
    contributions: list[Contribution]
    microbatches: int  # of this rank, without empty contributions
    targets: float  # of all ranks


class Ranks:
    """The ranks that train one model. A plain model has one, which exchanges nothing.

    There are two exchanges in a window: before its first forward pass (microbatches, targets,
    loss scale) and before its last backward pass (loss sums). Between them nothing waits for
    another rank under DDP. One more finds that all ranks are at the end of their data.
    """

    def __init__(
        self,
        model: Module,
        objective: Objective,
        scaler: torch.amp.GradScaler | None = None,
        tails: Tails = "raise",
    ) -> None:
        self._wrappers = Wrappers(model)
        self._model, self._objective = model, objective
        self._scaler, self._tails = scaler, tails
        self._window: Window | None = None
        self._team: Team | None = None
        self._peers: Peers | None = None
        self._index = 0
        self._loss_sums: list[tuple[float, ...]] = []

    def __enter__(self) -> Self:
        self._team = self._wrappers.team
        self._peers = Peers(self._team.ranks) if self._team else None
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        if self._peers is None:
            return
        if error is not None and is_lost_connection(error):
            raise self._peers.lost(self._index) from error
        if isinstance(error, NonfiniteGradientError) and self._loss_sums and self._wrappers.reduces:
            with suppress(Exception):  # of an explanation, which must not replace the error
                self._blame(error)
        if isinstance(error, GeneratorExit):
            self._peers.leave(f"left the loop after window {self._index}")
        elif error is None:
            self._peers.leave("is at the end of its data")
        else:
            name = type(error).__name__
            self._peers.leave(f"failed in window {self._index} with {name}: {error}")

    def synchronize(self, last: bool) -> AbstractContextManager[None]:
        """Around forward *and* backward: gradients are reduced in the last pass of a window."""
        return self._wrappers.synchronize(last)

    def in_step(self, windows: Iterable[list[Any]]) -> Iterator[Window]:
        """The windows of this rank, each agreed on by all ranks before its first forward."""
        iterator = iter(windows)
        spare: list[Any] = []
        for index in itertools.count():
            self._index = index
            own = next(iterator, [])
            if self._tails == "empty":
                spare = own[-1:] or spare
            longest, targets = self._agree(index, own, len(spare))
            if not longest:
                return
            missing = longest - len(own)
            divisors = [targets / self.size] * len(own) + [math.inf] * missing
            lasts = [False] * (longest - 1) + [True]
            passes = list(map(Contribution, own + spare * missing, divisors, lasts))
            self._loss_sums = []
            self._window = Window(index, passes, len(own), targets)
            yield self._window

    def _agree(self, index: int, own: list[Any], spare: int) -> tuple[int, float]:
        """The number of passes of every rank, and the targets of all; or one error for all."""
        count = denominator(self._objective, own, index)
        lengths, counts = [len(own)], [count]
        if self._team and self._peers:
            scale = self._scaler.get_scale() if self._scaler else 1.0
            place = self._team.data.index(self._team.ranks[self._peers.rank])
            alike = fingerprint(own) if len(self._team.ranks) > self.size else 0
            rows = self._peers.exchange((len(own), count, spare, scale, place, alike))
            lengths, counts, spares, scales, places, prints = map(list, zip(*rows, strict=True))
            _refuse_other_data(index, places, lengths, counts, prints)
            self._refuse_differences(index, lengths, spares, scales)
        targets = sum(self._of_data(counts))
        if not 0 < targets < math.inf and any(lengths):
            by_rank = f" ({counts} by rank)" if self._peers else ""
            raise ValueError(
                f"window {index} has no supervised target: its denominators add up to {targets}"
                f"{by_rank}, so its mean loss does not exist. Nothing was changed. Leave such "
                "windows out, or make accumulation_steps larger."
            )
        return max(lengths), targets

    def _of_data(self, by_rank: list[Any]) -> list[Any]:
        """What each microbatch counts once for: not again on ranks that hold parts of one layer."""
        if self._team is None:
            return by_rank
        return [by_rank[self._team.ranks.index(rank)] for rank in self._team.data]

    def _refuse_differences(
        self, index: int, lengths: list[int], spares: list[int], scales: list[float]
    ) -> None:
        by_rank = f"window {index} has {lengths} microbatches by rank"
        if self._tails == "raise" and len(set(lengths)) > 1:
            raise ValueError(
                f"{by_rank}. All ranks need equally many: give them equal shares of the data, or "
                "pass tails='empty', so that short ranks take part with empty contributions."
            )
        if len(set(lengths)) > 1 and not all(spares):
            raise ValueError(
                f"{by_rank}, and rank {spares.index(0)} never had one, so that it has no inputs "
                "for an empty contribution. Give every rank at least one microbatch."
            )
        if len(set(scales)) > 1:
            raise ValueError(
                f"the loss scale must be the same on every rank, got {scales} by rank in window "
                f"{index}. Make the scalers alike, or restore one state on all ranks."
            )

    def _blame(self, error: NonfiniteGradientError) -> None:
        """Repeat the failed window without reducing gradients: whose own is not finite?

        The reduction has spread it over all ranks, so afterwards nothing else can tell.
        """
        assert self._window is not None
        assert self._peers is not None
        for microbatch, divisor, _ in self._window.contributions:
            with self._wrappers.synchronize(last=False):
                (self._objective(self._model, microbatch) / divisor).backward()
        gradients = self._wrappers.gradients_of_this_rank()
        finite = all(bool(gradient.isfinite().all()) for gradient in gradients)
        self._wrappers.forget()
        culprits = [rank for rank, (one,) in enumerate(self._peers.exchange((finite,))) if not one]
        error.add_note(f"it came from {named(culprits)}" if culprits else "each rank's was finite")

    def meet(self, loss_sums: list[Tensor], window: Window) -> None:
        """Wait for all ranks before the reduction, so that none waits in it for one that failed."""
        if self._peers:
            self._loss_sums = self._peers.exchange(
                first_fault_or_sum(loss_sums, window.microbatches)
            )

    def total(self, loss_sums: list[Tensor], window: Window) -> float:
        """The loss sum of a window over all ranks; the device is read once."""
        if self._peers is None:
            self._loss_sums = [first_fault_or_sum(loss_sums, window.microbatches)]
        for rank, (number, value) in enumerate(self._loss_sums):
            if not math.isfinite(value):
                place = f", rank {rank}" if self._peers else ""
                raise FloatingPointError(
                    f"the loss sum of window {window.index}{place}, microbatch {number:.0f} is "
                    f"{value}. Nothing was updated. Look at the inputs and targets of this "
                    "microbatch."
                )
        return math.fsum(value for _, value in self._of_data(self._loss_sums))

    @property
    def size(self) -> int:
        """Over how many ranks, with other data each, gradients are averaged."""
        return len(self._team.data) if self._team else 1


def _refuse_other_data(
    index: int, places: list[int], lengths: list[int], counts: list[float], prints: list[int]
) -> None:
    """Ranks that hold parts of one layer have one place among the data, and the same data."""
    rows = list(zip(places, lengths, counts, prints, strict=True))
    if len(set(rows)) > len(set(places)):
        raise ValueError(
            f"ranks that hold parts of one layer (tensor parallelism) need the same microbatches, "
            f"but those of window {index} differ: {lengths} microbatches, with {counts} targets in "
            "all, by rank. Share the data out by data-parallel rank alone, and give each of its "
            "tensor-parallel ranks the same share in the same order."
        )
