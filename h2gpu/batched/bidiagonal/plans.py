"""Which kernel instance makes a matrix bidiagonal: kernels/bidiagonal/bidiagonalize.cuh or bidiagonalize_large.cuh.

Registers hold up to 128 × 128, by a warp up to 32 × 32; shared memory what fits there, device memory the rest.
One thread block a matrix, or several where few matrices in device memory would leave multiprocessors idle.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from h2gpu.batched.device import tuning

WARP = 32
LARGEST = 1024  # columns
TILES = (1, 2, 3, 4, 5, 6, 8)  # rows and columns of a lane
NARROW, WIDE = (8, 64), (16, 128)  # lanes along the columns, and columns up to which
BLOCKS = ((1, 32), (2, 32), (4, 32), (8, 64))  # warps of a block, and entries of a lane at most
BLOCK_WORDS, LANE_WORDS, OTHER_WORDS = 1 << 16, 255, {4: 16, 8: 18}  # registers, and those besides entries and vectors
SCHEDULERS = 4  # of a multiprocessor, each with as many warps as the others
VECTORS = 3  # of a lane's rows and columns, held besides its entries
VECTOR_BYTES = 16
LAYOUTS = {  # lanes along a row and vectors of a lane, by growing number of columns
    4: ((8, 1), (8, 2), (8, 4), (8, 5), (8, 6), (8, 8), (16, 8), (16, 16)),
    8: ((8, 2), (8, 4), (8, 8), (16, 5), (16, 6), (16, 8), (32, 8), (32, 16)),
}
SHARED_BLOCKS, SHARED_WARPS = (2, 1), 8  # of a multiprocessor, at best first; of a block: the matrix in shared memory
TABLE, PRECISIONS = "gebrd", {4: np.float32, 8: np.float64}  # of knobs in device memory: kernels/tuning
SPILL_BYTES = 192  # that instances may spill, at most
CLUSTERS = (2, 4, 8)  # thread blocks that share a matrix in device memory
CLUSTER_CAPABILITY = 90  # of the first devices that have clusters
PARTED = 7 / 8  # of the multiprocessors that clusters of more than two reach: they lie within parts of the device
ALL_PLACES = 4  # blocks of a cluster, of which multiprocessors hold several; not all of larger ones run at once
# microseconds on an H200: of a column, of the sums that a cluster's blocks exchange there, of an entry passed over
COLUMN, EXCHANGE, ENTRY = 5.0, 0.3, {4: 1.25e-4, 8: 2.43e-4}
BESIDE = 0.8  # how much longer a block takes for each that its multiprocessor has besides


class Tile(NamedTuple):
    """Template arguments of `bidiagonalize`."""

    rows: int
    columns: int
    across: int
    warps: int
    resident: int


class Rows(NamedTuple):
    """Template arguments of `bidiagonalize_large`."""

    across: int
    vectors: int
    warps: int
    resident: int
    held: int  # columns of V and X of a panel; 0: the matrix is in shared memory


def published(routine, dtype, **sizes):
    """A row of the fallback's tuning tables, for whoever has no device at hand."""
    return tuning.first_row(tuning.FALLBACK, routine, dtype, **sizes)


@lru_cache(maxsize=4096)
def plan(itemsize, m, n, shared_limit, row_of=published):
    """Tile or Rows for a matrix of m rows and n ≤ m columns.

    shared_limit   bytes of a block
    row_of         looks up tuning tables: `tuning.row` for those of the current device
    """
    return tile(itemsize, m, n) or large(itemsize, m, n, shared_limit, row_of)


def tile(itemsize, m, n):
    """The fewest warps that hold the matrix in registers, or None."""
    if n > WIDE[1]:
        return None
    across = NARROW[0] if n <= NARROW[1] else WIDE[0]
    columns = _least(TILES, -(-n // across))
    for warps, entries in BLOCKS:
        rows = _least(TILES, -(-m * across // (WARP * warps)))
        if rows and rows * columns <= entries:
            words = itemsize // 4 * (rows * columns + VECTORS * (rows + columns)) + OTHER_WORDS[itemsize]
            resident = max(1, BLOCK_WORDS // (warps * WARP * min(words, LANE_WORDS)))
            even = max(1, SCHEDULERS // warps)
            return Tile(rows, columns, across, warps, min(max(1, resident // even * even), WARP))
    return None


def large(itemsize, m, n, shared_limit, row_of=published):
    """In shared memory where it fits, else in device memory: blocks at most, warps and panels by the table."""
    across, vectors, capacity = _layout(itemsize, n)
    for resident in SHARED_BLOCKS:
        if resident * shared_bytes(itemsize, m, n, across, vectors, SHARED_WARPS, 0) <= shared_limit:
            return Rows(across, vectors, SHARED_WARPS, resident, 0)
    row = row_of(TABLE, PRECISIONS[itemsize], columns=n)
    warps, held = row["warps"], row["held"]
    for resident in range(row["resident"], 0, -1):
        if resident * shared_bytes(itemsize, m, capacity, across, vectors, warps, held) <= shared_limit:
            return Rows(across, vectors, warps, resident, held)


def blocks(knobs, itemsize, m, n, count, multiprocessors):
    """Thread blocks of each of `count` matrices of m × n under these Rows.

    The fewest that take a column the least time, of those numbers with which all matrices are worked on at once.
    """
    whole = int(PARTED * multiprocessors)
    beside = {each: knobs.resident if each <= ALL_PLACES else 1 for each in CLUSTERS}
    places = {each: beside[each] * (whole if each > 2 else multiprocessors) // each for each in CLUSTERS}
    some = [each for each in CLUSTERS if knobs.held and count <= places[each]]
    return min((1, *some), key=lambda each: column_time(each, knobs.resident, itemsize, m, n, count, multiprocessors))


def column_time(each, resident, itemsize, m, n, count, multiprocessors):
    """Microseconds of a column on the average, by `each` blocks a matrix."""
    share = min(resident, -(-count * each // multiprocessors))  # blocks of a multiprocessor at a time
    entries = m * n / 2 - n * n / 6  # that are left of the matrix
    return COLUMN + EXCHANGE * (each > 1) + ENTRY[itemsize] * entries * (1 + BESIDE * (share - 1)) / each


def _layout(itemsize, n):
    """Lanes, vectors and columns of the first layout that holds n columns."""
    sizes = ((across, vectors, vectors * _round(itemsize, across)) for across, vectors in LAYOUTS[itemsize])
    return next(size for size in sizes if size[-1] >= n)


def _round(itemsize, across):
    """Columns that so many lanes take at once."""
    return across * VECTOR_BYTES // itemsize


def shared_bytes(itemsize, m, n, across, vectors, warps, held):
    """Of a block of bidiagonalize_large."""
    row, guard = pitch(itemsize, n, across), _round(itemsize, across) if vectors % 2 == 0 else 0
    return itemsize * ((row + held) * (warps + 2) + guard + row * (held or m))


def pitch(itemsize, n, across):
    """Entries of a row with its padding."""
    columns = _round(itemsize, across)
    return -(-n // columns) * columns


def _least(sizes, needed):
    return next((size for size in sizes if size >= needed), None)


def keys(itemsize, rows, columns, shared_limit):
    """(fields, sizes): 0 and a Tile, or 1 and Rows, for each size."""
    tall, wide = np.maximum(rows, columns).tolist(), np.minimum(rows, columns).tolist()
    if max(wide, default=0) > LARGEST:
        raise ValueError(f"bidiagonalize: expected min(m, n) ≤ {LARGEST} on the GPU, got {max(wide)}")
    plans = [plan(itemsize, m, n, shared_limit, tuning.row) for m, n in zip(tall, wide)]
    return np.array([[isinstance(p, Rows), *p] for p in plans], np.int64).reshape(-1, 1 + len(Tile._fields)).T
