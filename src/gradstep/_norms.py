"""The norm of many NumPy arrays read as one vector, right for every finite entry."""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
Array = NDArray[Any]
Blocks = Callable[[], Iterable[list[Array]]]

ROW = 1024  # entries summed in float32, at most, before float64 takes over
SMALL = 16_384  # arrays below this many entries are gathered, which beats a call for each
GATHERED = 1 << 20  # entries gathered at most, so that the copy stays small
UNEVEN = (0, 0)  # no length of a row divides the size
READY = frozenset({np.dtype(np.float32), np.dtype(np.float64)})  # in the machine's byte order
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

    def divided(self, divisor: float) -> "Norm":
        """The norm of the entries divided by `divisor`."""
        return self if divisor == 1 else self._replace(scale=self.scale / divisor)


def by_size(items: list[T], size: Callable[[T], int]) -> tuple[list[T], list[list[T]]]:
    """Large items, and the small ones in batches of about `GATHERED` entries."""
    sizes = list(map(size, items))
    if max(sizes, default=SMALL) < SMALL:
        if sum(sizes) < GATHERED:
            return [], [items]
    elif min(sizes, default=SMALL) >= SMALL:
        return items, []
    large: list[T] = []
    batches: list[list[T]] = [[]]
    held = 0
    for item, entries in zip(items, sizes, strict=True):
        if entries >= SMALL:
            large.append(item)
            continue
        if held >= GATHERED:
            batches.append([])
            held = 0
        batches[-1].append(item)
        held += entries
    return large, batches if batches[-1] else []


def contiguous_blocks(arrays: list[Array]) -> Iterator[list[Array]]:
    """Every entry of real `arrays` in contiguous float32 or float64 blocks.

    All blocks of a list are there at once; those of an earlier list may be gone.
    """
    large, batches = by_size(arrays, lambda array: array.size)
    yield from large_blocks(large)
    for batch in batches:
        yield [np.concatenate([array.ravel() for array in batch], dtype=_wide(*batch))]


def large_blocks(arrays: list[Array]) -> Iterator[list[Array]]:
    """As `contiguous_blocks`, each array on its own: itself where possible, else in chunks."""
    ready = [array for array in arrays if array.dtype in READY and array.flags.c_contiguous]
    if ready:
        yield ready
    if len(ready) < len(arrays):
        known = set(map(id, ready))
        others = (array for array in arrays if id(array) not in known)
        yield from ([chunk] for array in others for chunk in _walked(array))


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
            if is_in_range(square, entries):
                return Norm(1.0, math.sqrt(square), entries)
        return _scaled(blocks, order)


def is_in_range(square: float, entries: int) -> bool:
    """Whether the sum of squares, taken in float32, is what it should be.

    Below: squares that underflow could matter. Above: they overflow. NaN fails, too.
    """
    return 2.0**-100 * entries <= square < math.inf


def _sum_of_squares(blocks: Iterable[list[Array]]) -> tuple[float, int]:
    total, entries = 0.0, 0
    for together in blocks:
        sizes = [block.size for block in together]
        entries += sum(sizes)
        # all views first: made between two reads of main memory they would cost twice as much
        shapes = list(map(_rows, sizes))
        if UNEVEN in shapes:
            together = [part for block in together for part in _even_parts(block)]
            shapes = [_rows(part.size) for part in together]
        rows = list(map(np.ndarray.reshape, together, shapes))
        squares = list(map(np.vecdot, rows, rows))
        total += float(np.add.reduce(np.concatenate(squares, dtype=np.float64)))
    return total, entries


@functools.lru_cache(1024)
def _rows(size: int) -> tuple[int, int]:
    """The shape that gives `size` entries rows of one length up to `ROW`, or `UNEVEN`."""
    if size <= ROW:
        return 1, size
    length = next((row for row in range(ROW, ROW // 2, -1) if size % row == 0), 0)
    return (size // length, length) if length else UNEVEN


def _even_parts(block: Array) -> list[Array]:
    """The block as one or two pieces that rows of one length fill."""
    if _rows(block.size) != UNEVEN:
        return [block]
    flat = block.reshape(-1)
    rest = block.size % ROW
    return [flat[:-rest], flat[-rest:]]


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
    try:
        return Norm(largest, math.pow(math.fsum(powers), 1 / order), entries)
    except OverflowError:
        raise ValueError(
            f"norm_type {order} gives {entries} entries a norm beyond float64. Use a larger one."
        ) from None


def _chunks(blocks: Iterable[list[Array]]) -> Iterator[Array]:
    for block in itertools.chain.from_iterable(blocks):
        flat = block.reshape(-1)
        yield from (flat[start : start + CHUNK] for start in range(0, flat.size, CHUNK))


class Precision(NamedTuple):
    """How coarsely gradients are stored: the worst of their dtypes."""

    epsilon: float  # the spacing of numbers next to 1
    spacing: float  # the spacing of the smallest numbers

    @classmethod
    def coarsest(cls, finfos: Iterable[Any]) -> "Precision":
        """From NumPy's or torch's `finfo` of each dtype; without any, nothing is rounded."""
        known = [(float(f.eps), float(f.eps) * float(f.smallest_normal)) for f in finfos]
        return cls(*(max(column) for column in zip((0.0, 0.0), *known, strict=True)))

    @property
    def double(self) -> bool:
        """Whether all are float64."""
        return self.epsilon < 1e-12


class Margin(NamedTuple):
    """By how much to stay below a bound, so that what is stored measures at most the bound."""

    relative: float
    absolute: float

    def below(self, bound: float) -> float:
        """The norm to scale to."""
        return max(0.0, bound * (1 - self.relative) - self.absolute)


def margin(order: float, entries: int, precision: Precision) -> Margin:
    """The margin for `entries` of a precision.

    Rounding to the stored dtype adds to an entry at most epsilon / 2 of it, or half the
    smallest spacing. The true norm is kept below the bound by one error of measurement and
    is itself known up to one: measured again it is still within, and nothing clips.
    """
    if precision.double:
        relative = 1e-12
    else:
        # a row of squares is summed by 32 partial sums or more: 32 roundings one after another
        # and 5 to join them, of which the root takes half; they count twice. Rounding the
        # coefficient to float32 counts once
        relative = precision.epsilon / 2 + 2 * 3e-8 * min(entries, 37) + 6e-8
    return Margin(relative, precision.spacing / 2 * math.pow(entries, 1 / order))


def clip_target(max_norm: float, order: float, entries: int, precision: Precision) -> float:
    """The norm to scale to, so that what is stored measures at most `max_norm` again."""
    return margin(order, entries, precision).below(max_norm)


def steps(coefficient: float) -> Iterator[float]:
    """Factors that multiply to `coefficient`, each of them a normal float32 number."""
    while 0 < coefficient < 2.0**-100:
        yield 2.0**-100
        coefficient *= 2.0**100
    yield coefficient
