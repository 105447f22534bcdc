"""Blocks and tiles of products of one shape, chosen by counting, not by trial: whole matrices, a group a block
(kernels/batched/fixed_gemm.cuh), or slabs of inner indices that stream past resident sums (streamed_gemm.cuh).

A block's clocks are the most of what its warps multiply, what they read from shared memory, and what it moves; plans
whose block leaves room for others on a multiprocessor are preferred, so that copies of one go on under the products of
another.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

BY_ROWS, BY_LANES, BY_TENSOR = 0, 1, 2  # methods of the kernels
WARP, STRIP, TENSOR_TILE, WIDEST = 32, 8, 16, 16  # of the kernels; bytes of a copy
LARGEST = 160  # of rows, columns and inner indices
SPILL_BYTES = {np.float64: 48, np.float32: 0, np.complex64: 48, np.complex128: 48}  # at most, by ptxas
ROW_EDGES, ROW_ENTRY = (12, 16), 8  # matrices take a thread a row up to the first, may up to the second; bytes
ROW_THREADS, GROUP_WARPS = 128, 4  # of a block, about
GROUP_BYTES, WHOLE_BYTES = 37 << 10, 70 << 10  # shared memory of a group of matrices, of one whole matrix
WHOLE = 64  # largest rows, columns and inner indices of whole matrices of more bytes than a group
SLAB = 16  # inner indices at a time, where slabs stream
ACCUMULATORS, BESIDES = (
    160,
    {True: 64, False: 56},
)  # of a thread: sums at most, others if it streams or not
REGISTERS = 1 << 16  # of a multiprocessor
SHARED_BYTES, BLOCK_BYTES = 227 << 10, 1 << 10  # of a multiprocessor; what each block takes besides
QUARTERS, MOVED_PER_CLOCK = 4, 20  # parts of a multiprocessor; bytes that it moves a clock
ALONE = {1: 1.6, 2: 1.1}  # how much longer so few blocks a multiprocessor take that hold whole matrices
LATENCY, READS = 0.03, 0.3  # weights of a block's own time, of reads from shared memory
ENOUGH_WARPS, LATE = 12, 0.05  # of a multiprocessor; how much longer it takes for each warp missing
GRIDS = tuple((r, c) for r, c in product((1, 2, 4), (1, 2, 4, 8)) if r * c in (1, 2, 4, 8))
TENSOR_CLOCKS = 32  # of a quarter: a 16 × 8 × 8 product
STREAM_WARPS, MOST_STAGES, MOST_BLOCKS = 16, 4, 3  # of a block that streams; slabs in its ring; blocks a multiprocessor
IN_FLIGHT = 40 << 10  # bytes that a multiprocessor must have on their way
BARRIER, STORED_PER_CLOCK, OVERLAP = 150, 64, 0.15  # clocks a slab; bytes of sums that leave; what the lesser works add


@dataclass(frozen=True)
class Plan:
    """Matrices and rows a block, inner indices a slab, warps along rows and columns, shared bytes.

    streams   slabs pass, and `resident` blocks a multiprocessor stay for all matrices
    """

    method: int
    group: int
    band: int
    slab: int
    warp_rows: int
    warp_columns: int
    shared: int
    streams: bool = False
    resident: int = 0

    def threads(self, m):
        """Of a block."""
        if self.method == BY_ROWS:
            return -(-self.group * m // WARP) * WARP
        return self.group * self.warp_rows * self.warp_columns * WARP

    def blocks(self, batch, m, multiprocessors):
        """Of the grid: whole matrices."""
        bands = -(-m // self.band)
        work = -(-batch // self.group) * bands
        return min(work, max(1, self.resident * multiprocessors // bands) * bands) if self.streams else work

    def excess(self, m, n, k):
        """Entries computed beyond the edges of C, as a fraction of those that count."""
        if self.method == BY_ROWS:
            return 0.0
        unit = TENSOR_TILE if self.method == BY_TENSOR else STRIP
        rows = sum(pitch_of(min(self.band, m - row), unit, 0) for row in range(0, m, self.band))
        return rows * pitch_of(n, STRIP, 0) / (m * n) - 1

    @property
    def kernel(self):
        """The kernel's name, and that of its header in kernels/batched."""
        return "streamed_gemm" if self.streams else "fixed_gemm"

    @property
    def arguments(self):
        """Of the template, in its order, behind shape and transposes."""
        grid = self.warp_rows, self.warp_columns
        if self.streams:
            return self.method, self.band, self.slab, *grid, self.shared, self.resident
        return self.method, self.group, *grid, self.shared


@cache
def plan(dtype, m, n, k, transa, transb):
    """The Plan of a product, or None where the kernels are not for it."""
    found = candidates(dtype, m, n, k, transa, transb)
    return found[0] if found else None


def candidates(dtype, m, n, k, transa, transb):
    """Every Plan of a product: those of the kernel for it, that of the fewest clocks first, then those of the other."""
    size, sizes, trans = np.dtype(dtype).itemsize, (m, n, k), (transa, transb)
    if min(sizes) < 1 or max(sizes) > LARGEST:
        return []
    if max(sizes) <= ROW_EDGES[1] and size <= ROW_ENTRY:
        bytes_of = [whole_bytes(dtype, sizes, trans, BY_ROWS, group) for group in range(1, 1 + ROW_THREADS // m)]
        group = max([1, *(group for group, count in enumerate(bytes_of, 1) if count <= GROUP_BYTES)])
        by_rows = [Plan(BY_ROWS, group, m, k, 1, 1, bytes_of[group - 1])]
    else:
        by_rows = []
    method = BY_TENSOR if np.dtype(dtype) == np.float64 else BY_LANES
    own = whole_bytes(dtype, sizes, trans, method, 1)
    whole = [_whole(dtype, method, sizes, trans, grid) for grid in GRIDS] if own <= WHOLE_BYTES else []
    found = [whole, _streams(dtype, method, sizes, trans)]
    if max(sizes) > WHOLE and own > GROUP_BYTES:
        found.reverse()
    others = [plan for some in found for _, plan in sorted(filter(None, some), key=lambda pair: pair[0])]
    return by_rows + others if max(sizes) <= ROW_EDGES[0] else others[:1] + by_rows + others[1:]


def _whole(dtype, method, sizes, trans, grid):
    """(clocks of a multiprocessor a matrix, plan), or None where a thread's sums exceed its registers."""
    m, n, k = sizes
    group = 1
    for more in range(2, 1 + max(1, GROUP_WARPS // (grid[0] * grid[1]))):
        if whole_bytes(dtype, sizes, trans, method, more) <= GROUP_BYTES:
            group = more
    plan = Plan(method, group, m, k, *grid, whole_bytes(dtype, sizes, trans, method, group))
    work = _Work(dtype, method, sizes, m, grid)
    if work.registers is None:
        return None
    needed = plan.threads(m) * (BESIDES[False] + work.registers)
    resident = max(1, min(REGISTERS // needed, (SHARED_BYTES - BLOCK_BYTES) // plan.shared))
    moved = np.dtype(dtype).itemsize * (m * k + k * n + m * n) / MOVED_PER_CLOCK
    slowest = work.largest * max(1, grid[0] * grid[1] / QUARTERS)
    missing = max(0, ENOUGH_WARPS - resident * plan.threads(m) // WARP)
    clocks = max(work.even, work.reads, moved) + LATENCY * slowest + READS * work.reads
    return clocks * ALONE.get(resident, 1) * (1 + LATE * missing), plan


def _streams(dtype, method, sizes, trans):
    """All (clocks of a multiprocessor a matrix, plan) with slabs in a ring."""
    (m, n, k), size = sizes, np.dtype(dtype).itemsize
    unit, slab = TENSOR_TILE if method == BY_TENSOR else STRIP, min(SLAB, k)
    grids = [(r, c) for r, c in product(range(1, 9), range(1, 17)) if r * c <= STREAM_WARPS]
    for pieces, grid in product(range(1, 6), grids):
        band = m if pieces == 1 else -(-m // (pieces * unit)) * unit
        bands, work = -(-m // band), _Work(dtype, method, (min(band, m), n, k), band, grid)
        if work.registers is None:
            continue
        threads = grid[0] * grid[1] * WARP
        moved = size * (m * k + bands * k * n + m * n) / MOVED_PER_CLOCK
        stored = size * m * n / STORED_PER_CLOCK
        for resident in range(1, 1 + min(MOST_BLOCKS, REGISTERS // (threads * (BESIDES[True] + work.registers)))):
            room = SHARED_BYTES // resident - BLOCK_BYTES
            stage, beyond = stage_bytes(dtype, sizes, trans, method, band, slab)
            stages = min(MOST_STAGES, (room - beyond) // stage)
            if stages < 2:
                continue
            plan = Plan(method, 1, band, slab, *grid, stages * stage + beyond, True, resident)
            # a quarter's warps of one block, evened out by those of others
            quarter = bands * (work.even + (work.busiest - work.even) / resident)
            parts = quarter, bands * work.reads, moved
            waits = (bands * -(-k // slab) * BARRIER + stored) / resident
            missing = max(0, ENOUGH_WARPS - resident * threads // WARP)
            late = max(1, IN_FLIGHT / (resident * (stages - 1) * stage))
            clocks = max(max(parts[:2]), moved * late) + OVERLAP * (sum(parts) - max(parts)) + waits
            yield clocks * (1 + LATE * missing), plan


class _Work:
    """What a block's warps do for a band of one matrix, in clocks; registers: of a thread, for sums and factors."""

    def __init__(self, dtype, method, sizes, band, grid):
        (_, n, k), size, (by_rows, by_columns) = sizes, np.dtype(dtype).itemsize, grid
        tensor = method == BY_TENSOR
        unit = TENSOR_TILE if tensor else STRIP
        rows, columns = -(-band // unit), -(-n // STRIP)
        own_rows, own_columns = -(-rows // by_rows), -(-columns // by_columns)
        sums = own_rows * own_columns * (4 if tensor else 2) * size // 4
        fits = sums <= ACCUMULATORS and by_rows <= rows and by_columns <= columns
        self.registers = sums + own_rows * (8 if tensor else 4) if fits else None
        if tensor:
            each = -(-k // 4) * 4 / STRIP * TENSOR_CLOCKS
            self.reads = (by_columns * rows * TENSOR_TILE + by_rows * columns * STRIP) * k * size / 128
        else:
            complex_, double = np.dtype(dtype).kind == "c", size == (16 if np.dtype(dtype).kind == "c" else 8)
            each = 2 * k * (4 if complex_ else 1) * (2 if double else 1)
            self.reads = k * (by_columns * rows * STRIP * size / 128 + by_rows * columns * max(1, STRIP * size / 128))
        self.largest, self.even = each * own_rows * own_columns, each * rows * columns / QUARTERS
        shares = np.outer(_dealt(rows, by_rows), _dealt(columns, by_columns)).ravel()
        self.busiest = each * max(int(shares[q::QUARTERS].sum()) for q in range(QUARTERS))


def _dealt(count, parts):
    """How many of `count` each of so many parts gets, by turns."""
    return [len(range(part, count, parts)) for part in range(parts)]


def whole_bytes(dtype, sizes, trans, method, group):
    """Shared memory of whole matrices: the factors with what reads of whole tiles reach, or the results."""
    size = np.dtype(dtype).itemsize
    stage, beyond = stage_bytes(dtype, sizes, trans, method, sizes[0], sizes[2], group, False)
    return max(stage + beyond, size * (group * sizes[0] * sizes[1]) + WIDEST)


def stage_bytes(dtype, sizes, trans, method, band, slab, group=1, streams=True):
    """Shared memory of a stage as FixedLayout counts, and what reads of whole tiles reach behind the last."""
    (m, n, k), (transa, transb), size = sizes, trans, np.dtype(dtype).itemsize
    chunk, tensor = WIDEST // size, method == BY_TENSOR
    rows_a, length_a = (slab, band) if tensor and transa else (band, slab)
    rows_b, length_b = (n, slab) if tensor and transb else (slab, n)
    odd_a, odd_b = (m if transa else k) % 2, (k if transb else n) % 2
    if tensor and not streams and odd_a and odd_b:
        pitch_a, pitch_b = (m if transa else k), (k if transb else n)
    elif tensor:
        pairs = streams and (odd_a or odd_b)
        pitch_a = pitch_of(length_a + streams * odd_a, *((4, 2) if pairs and transa else (8, 4)))
        pitch_b = pitch_of(length_b + streams * odd_b, *((4, 2) if pairs and not transb else (8, 4)))
    elif method == BY_LANES:
        pitch_a, pitch_b = pitch_of(length_a, 2 * chunk, chunk), pitch_of(length_b, max(chunk, 2), 0)
    else:
        pitch_a, pitch_b = length_a | 1, length_b | 1
    entries_a, entries_b = (
        pitch_of(group * rows * pitch + chunk, chunk, 0) for rows, pitch in ((rows_a, pitch_a), (rows_b, pitch_b))
    )
    more_rows = more_columns = 0
    if method != BY_ROWS:
        unit = TENSOR_TILE if tensor else STRIP
        more_rows, more_columns = -(-band // unit) * unit - band, -(-n // STRIP) * STRIP - n
    beyond_a = more_rows * (1 if tensor and transa else pitch_a) - entries_b
    beyond_b = more_columns * (pitch_b if tensor and transb else 1)
    return size * (entries_a + entries_b), size * max(beyond_a, beyond_b, 0)


def pitch_of(length, unit, rest):
    """The least number of at least `length` that leaves `rest` when divided by `unit`."""
    return -(-(length - rest) // unit) * unit + rest
