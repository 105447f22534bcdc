"""What every launch of a kernel needs: sizes on the device, a list of tiles, a grid of at least one block."""

from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import cupy
import numpy as np

from h2gpu.arrays import moved
from h2gpu.batched.core.matrix_batch import MatrixBatch, ResidentBatch
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.batched.device import driver
from h2gpu.batched.device.compiler import kernel

OWNER_WARPS = 8
TABLE_THREADS, TABLE_COLUMNS, TABLE_WORDS = 128, 24, 4  # of kernels/copies/table.cuh; columns of a launch at most
TABLE = np.dtype([("words", np.int64, TABLE_COLUMNS * TABLE_WORDS)])
ARRAY, WORD = -1, 8  # step of an array without gaps; bytes
WARP = 32
NULL = np.uint64(0)  # a kernel argument
IDLE = 2  # thread blocks launched for each that has work, at most, in place of a list of tiles
_record, _kept = None, False  # where launches are written down, if anywhere, and whether with their arguments


def upload(*arrays):
    """Integer arrays of one length, all on the host or all on the device, as (arrays, length) int64 on the device."""
    if isinstance(arrays[0], cupy.ndarray):
        return tables(len(arrays[0]), list(arrays))[0]
    return moved(np.array(arrays, np.int64), cupy)


def addresses(*batches):
    """Arrays and MatrixBatches as a kernel takes them; NULL for None."""
    return tuple([NULL if M is None else M.buffer if isinstance(M, MatrixBatch) else M for M in batches])


class Steps(NamedTuple):
    """A column of a table: first, first + size, first + 2 size, …"""

    size: int
    first: int = 0


def tables(count, *columns):
    """Tables of whole numbers for `count` matrices, int64 on the device, by one launch.

    columns   of each table: a tuple, for (count, columns); a list, for (columns, count). A column is `count` int64
              numbers on the device, Steps, or one number for all
    """
    out = cupy.empty((sum(map(len, columns)), count), np.int64)
    words, first, found, kept = [], 0, [], []
    for these in columns:
        size, lines = len(these), isinstance(these, tuple)
        along, across = (size, 1) if lines else (1, count)
        part = out[first : first + size]
        found.append(part.reshape(count, size) if lines else part)
        for i, column in enumerate(these):
            if isinstance(column, cupy.ndarray):
                plain = column.dtype == np.int64 and column.strides[0]  # a step of 0 would make the address a number
                column = column if plain else cupy.ascontiguousarray(column, np.int64)
                kept.append(column)  # until the launch: what is let go before, the next would be given
                source = column.data.ptr, -column.strides[0] // WORD if count > 1 else ARRAY
            else:
                source = (column.first, column.size) if isinstance(column, Steps) else (column, 0)
            words += (*source, first * count + i * across, along)
        first += size
    words += [0] * (TABLE_WORDS * TABLE_COLUMNS - len(words))
    packed = np.array(words, np.int64).view(TABLE)[0]
    launch(kernel("copies/table.cuh", "table"), -(-count // TABLE_THREADS), TABLE_THREADS, (out, count, first, packed))
    return found


def launch(function, blocks, threads, arguments, shared_bytes=0):
    """Run function on a grid of `blocks`; nothing where there are none. Plain int arguments travel as C int."""
    if blocks:
        layout = driver.thread.layouts.get(function) if _record is None else None
        if layout is None or not layout.launch(blocks, threads, arguments, shared_bytes):
            _by_cupy(function, int(blocks), int(threads), arguments, int(shared_bytes))


def _by_cupy(function, blocks, threads, arguments, shared_bytes):
    """The first launch of a kernel in a thread, those that are written down, and what the driver was not asked for."""
    arguments = tuple([np.int32(a) if type(a) is int else a for a in arguments])
    start = None if _record is None else cupy.cuda.get_current_stream().record()
    function((blocks,), (threads,), arguments, shared_mem=shared_bytes)
    if start is not None:
        stop, kept = cupy.cuda.get_current_stream().record(), arguments if _kept else ()
        _record.append(Launch(function, blocks, threads, shared_bytes, start, stop, kept))
    driver.remember(function, arguments)


class Ready:
    """A launch that waits for its arrays alone: the kernel, its grid and the numbers that it takes behind them."""

    __slots__ = "blocks", "function", "numbers", "shared_bytes", "threads"

    def __init__(self, function, blocks, threads, shared_bytes, numbers):
        self.function, self.numbers = function, tuple(numbers)
        self.blocks, self.threads, self.shared_bytes = int(blocks), int(threads), int(shared_bytes)

    def __call__(self, *arrays, behind=()):
        """Launch; behind: arguments that differ from call to call and follow the numbers."""
        launch(self.function, self.blocks, self.threads, (*arrays, *self.numbers, *behind), self.shared_bytes)


class Launch(NamedTuple):
    """One launch as it was: the kernel, its grid, events before and after it, and its arguments where they are kept."""

    function: object
    blocks: int
    threads: int
    shared_bytes: int
    start: object
    stop: object
    arguments: tuple = ()

    def again(self):
        """The same launch, of arguments that were kept."""
        launch(self.function, self.blocks, self.threads, self.arguments, self.shared_bytes)


@contextmanager
def recorded_launches(keep=False):
    """Every launch inside the block, as a list of `Launch`, in order: for reports and profiles.

    keep   their arguments too, arrays among them, so that they can run again
    """
    global _record, _kept
    before = _record, _kept
    _record, _kept = [], keep
    try:
        yield _record
    finally:
        _record, _kept = before


def recording():
    """Whether launches are written down."""
    return _record is not None


def tile_count(sizes, edge):
    """⌈sizes / edge⌉, without the division where no size exceeds the edge."""
    return np.minimum(sizes, 1) if sizes.max(initial=0) <= edge else -(-sizes // edge)


@dataclass(frozen=True)
class Tiling:
    """Which tile of which matrix a thread block works on: see kernels/common/thread/tiling.cuh.

    blocks   of the grid
    each     blocks a matrix, some idle; unless `owner` is given
    first    (batch + 1,) tiles before each matrix, on the device, or null
    owner    (blocks,) matrix of each block, on the device, or null
    """

    blocks: int
    each: int
    first: object = NULL
    owner: object = NULL

    @property
    def arguments(self):
        """As kernels take them."""
        return self.first, self.owner, self.each

    @classmethod
    def of(cls, counts):
        """For counts[b] tiles of matrix b: without a list where few blocks are idle so."""
        most, total = int(counts.max(initial=0)), int(counts.sum())
        if len(counts) * most <= IDLE * total:
            return cls(len(counts) * most, most)
        (first,) = upload(offsets_of(counts))
        return cls(total, 0, first, tile_owners(counts, first))

    @classmethod
    def covering(cls, batch, edges):
        """For tiles of the given edges over matrices whose sizes are on the device, known by their bounds alone."""
        each = -(-batch.bounds[0] // edges[0]) * -(-batch.bounds[1] // edges[1])
        return cls(len(batch) * each, each)


def tiling(batch, edges):
    """Tiles of edges[0] × edges[1] entries over the matrices of a batch."""
    if isinstance(batch, ResidentBatch):
        return Tiling.covering(batch, edges)
    if batch.bounds[0] <= edges[0] and batch.bounds[1] <= edges[1]:
        return Tiling(len(batch), 1)
    return Tiling.of(tile_count(batch.rows, edges[0]) * tile_count(batch.columns, edges[1]))


def tile_owners(counts, first):
    """Which matrix each of Σ counts tiles belongs to, as int32 on the device.

    counts   (batch,) tiles of each matrix, on the host
    first    (batch + 1,) tiles before each matrix, on the device
    """
    total = int(counts.sum())
    owner = cupy.empty(total, np.int32)
    blocks = -(-len(counts) // OWNER_WARPS)
    function = kernel("copies/owners.cuh", "owners", OWNER_WARPS)
    launch(function, blocks, OWNER_WARPS * WARP, (first, owner, len(counts)))
    return owner
