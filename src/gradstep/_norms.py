"""The norm of many NumPy arrays read as one vector, right for every finite entry."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
Array = NDArray[Any]
Blocks = Callable[[], Iterable[list[Array]]]

ROW = 512  # entries summed in float32 before float64 takes over
SMALL = 16_384  # arrays below this many entries are gathered, which beats a call for each
GATHERED = 1 << 20  # entries gathered at most, so that the copy stays small
CHUNK = 65_536  # entries widened to float64 at a time: 512 KB, stays in cache


class Norm(NamedTuple):
    """A norm as `scale * ratio`, kept apart because the product may overflow."""

    scale: float
    ratio: float
    entries: int

    @property
    def value(self) -> float:
        """The norm itself; infinite when it is beyond float64."""
        return self.scale * self.ratio

    @property
    def finite(self) -> bool:
        """Whether every entry is finite, also where `value` overflows."""
        return math.isfinite(self.scale)


def by_size(items: Iterable[T], size: Callable[[T], int]) -> tuple[list[T], list[list[T]]]:
    """Large items, and the small ones in batches of about `GATHERED` entries."""
    large: list[T] = []
    batches: list[list[T]] = [[]]
    held = 0
    for item in items:
        entries = size(item)
        if entries >= SMALL:
            large.append(item)
            continue
        batches[-1].append(item)
        held += entries
        if held >= GATHERED:
            batches.append([])
            held = 0
    return large, batches if batches[-1] else batches[:-1]


def flat_blocks(arrays: Iterable[Array]) -> Iterator[list[Array]]:
    """Every entry of real `arrays` in one-dimensional float32 or float64 blocks.

    All blocks of a list are there at once; those of an earlier list may be gone.
    """
    large, batches = by_size(arrays, lambda array: array.size)
    ready = [a for a in large if a.dtype in (np.float32, np.float64) and a.flags.c_contiguous]
    if ready:
        yield [array.reshape(-1) for array in ready]
    known = set(map(id, ready))
    for array in large:
        if id(array) not in known:
            yield from ([chunk] for chunk in _walked(array))
    for batch in batches:
        yield [np.concatenate([array.ravel() for array in batch], dtype=_wide(*batch))]


def _walked(array: Array) -> Iterator[Array]:
    """An array of any layout, byte order or precision, widened a chunk at a time."""
    flags: Any = ["external_loop", "buffered"]
    wide = [_wide(array)]
    return iter(np.nditer(array, flags, op_dtypes=wide, casting="same_kind", buffersize=CHUNK))


def _wide(*arrays: Array) -> type:
    return np.float32 if all(array.dtype.itemsize <= 4 for array in arrays) else np.float64


def measure(blocks: Blocks, order: float) -> Norm:
    """The p-norm over all blocks: one read for p = 2 and inf, two for others.

    Entries whose squares would leave the range of float32 are read again in float64.
    """
    with np.errstate(all="ignore"):
        if order == 2:
            square, entries = _sum_of_squares(blocks())
            # below: squares that underflow could matter. above: they overflow. nan fails too
            if 2.0**-100 * entries <= square < math.inf:
                return Norm(1.0, math.sqrt(square), entries)
        return _scaled(blocks, order)


def _sum_of_squares(blocks: Iterable[list[Array]]) -> tuple[float, int]:
    squares, total, entries = [np.zeros(1)], 0.0, 0
    for together in blocks:
        # all views first: made between two reads of main memory they would cost twice as much
        rows, rests = zip(*map(_in_rows, together), strict=True)
        rest_rows, rest = _in_rows(np.concatenate(rests))
        squares += [np.vecdot(row, row) for row in (*rows, rest_rows)]
        total += float(rest.dot(rest))
        entries += sum(block.size for block in together)
    return total + float(np.concatenate(squares).sum(dtype=np.float64)), entries


def _in_rows(block: Array) -> tuple[Array, Array]:
    """Rows of `ROW` entries, and what is left over."""
    whole = block.size - block.size % ROW
    return block[:whole].reshape(-1, ROW), block[whole:]


def _scaled(blocks: Blocks, order: float) -> Norm:
    """The norm by way of the largest magnitude, in float64: nothing over- or underflows."""
    ends, entries = [0.0], 0
    for chunk in _chunks(blocks()):
        ends += (chunk.max(), -chunk.min())
        entries += chunk.size
    largest = abs(float(np.max(ends)))  # NaN if there is one; not -0.0
    if order == math.inf or largest == 0 or not math.isfinite(largest):
        return Norm(largest, 1.0, entries)
    powers = (
        np.sum(np.abs(chunk.astype(np.float64) / largest) ** order) for chunk in _chunks(blocks())
    )
    return Norm(largest, math.pow(math.fsum(powers), 1 / order), entries)


def _chunks(blocks: Iterable[list[Array]]) -> Iterator[Array]:
    for block in itertools.chain.from_iterable(blocks):
        yield from (block[start : start + CHUNK] for start in range(0, block.size, CHUNK))


class Precision(NamedTuple):
    """How coarsely gradients are stored: the worst of their dtypes."""

    epsilon: float  # the spacing of numbers next to 1
    spacing: float  # the spacing of the smallest numbers

    @classmethod
    def coarsest(cls, finfos: Iterable[Any]) -> "Precision":
        """From NumPy's or torch's `finfo` of each dtype."""
        known = [(float(f.eps), float(f.eps) * float(f.smallest_normal)) for f in finfos]
        return cls(max(eps for eps, _ in known), max(spacing for _, spacing in known))

    @property
    def double(self) -> bool:
        """Whether all are float64."""
        return self.epsilon < 1e-12


def clip_target(max_norm: float, order: float, entries: int, precision: Precision) -> float:
    """The norm to scale to, so that what is stored measures at most `max_norm` again.

    Rounding to the stored dtype adds to an entry at most epsilon / 2 of it, or half the
    smallest spacing. The true norm is kept below the bound by one error of measurement and
    is itself known up to one: measured again it is still within, and nothing clips.
    """
    if precision.double:
        relative = 1e-12
    else:
        # a row of squares is summed by 32 partial sums or more, so 16 roundings in a row at
        # most; they count twice, and rounding the coefficient to float32 counts once
        relative = precision.epsilon / 2 + 2 * 3e-8 * min(entries, 16) + 6e-8
    absolute = precision.spacing / 2 * math.pow(entries, 1 / order)
    return max(0.0, max_norm * (1 - relative) - absolute)


def steps(coefficient: float) -> Iterator[float]:
    """Factors that multiply to `coefficient`, each of them a normal float32 number."""
    while 0 < coefficient < 2.0**-100:
        yield 2.0**-100
        coefficient *= 2.0**100
    yield coefficient
