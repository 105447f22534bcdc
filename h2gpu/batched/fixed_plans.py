"""Blocks and tiles of kernels/batched/fixed_gemm.cuh for products of one shape: chosen by counting, not by trial.

A block's clocks are the most of what its warps multiply, what they read from shared memory, and what it moves; plans
whose block leaves room for others on a multiprocessor are preferred, so that copies of one go on under the products of
another.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

BY_ROWS, BY_LANES, BY_TENSOR = 0, 1, 2  # methods of the kernel
WARP, STRIP, TENSOR_TILE, STAGES, WIDEST = 32, 8, 16, 3, 16  # of the kernel; bytes of a copy
LARGEST = 160  # of rows, columns and inner indices
SPILL_BYTES = {np.float64: 176, np.float32: 16, np.complex64: 512, np.complex128: 80}  # at most, by ptxas
ROW_EDGES, ROW_ENTRY = (
    (12, 16),
    8,
)  # matrices take a thread a row up to the first, may up to the second; bytes of an entry
ROW_THREADS, GROUP_WARPS = 128, 4  # of a block, about
GROUP_BYTES, WHOLE_BYTES = 37 << 10, 75 << 10  # shared memory of a group of matrices, of one whole matrix
BLOCK_BYTES = 100 << 10  # of a block that lets another one in
SLAB = 16  # inner indices at a time, where not all fit
ACCUMULATORS, BESIDES = 160, 56  # registers of a thread: of sums at most, besides sums and factors
REGISTERS = 1 << 16  # of a multiprocessor
SHARED_BYTES = 226 << 10  # of a multiprocessor, less what each block takes besides
QUARTERS, MOVED_PER_CLOCK = 4, 20  # parts of a multiprocessor; bytes that it moves a clock
LATENCY, READS = 0.03, 0.3  # weights of a block's own time, of reads from shared memory
ALONE = {1: 1.6, 2: 1.1}  # how much longer so few blocks a multiprocessor take
ENOUGH_WARPS, LATE = 12, 0.05  # of a multiprocessor; how much longer it takes for each warp missing
GRIDS = tuple((r, c) for r, c in product((1, 2, 4), (1, 2, 4, 8)) if r * c in (1, 2, 4, 8))
TENSOR_CLOCKS = 32  # of a quarter: a 16 × 8 × 8 product


@dataclass(frozen=True)
class Plan:
    """Template arguments: matrices and rows a block, inner indices a slab, warps along rows and columns, bytes."""

    method: int
    group: int
    band: int
    slab: int
    warp_rows: int
    warp_columns: int
    shared: int

    def threads(self, m):
        """Of a block."""
        if self.method == BY_ROWS:
            return -(-self.group * m // WARP) * WARP
        return self.group * self.warp_rows * self.warp_columns * WARP

    def blocks(self, batch, m):
        """Of the grid."""
        return -(-batch // self.group) * -(-m // self.band)

    @property
    def arguments(self):
        """In the order of the template."""
        return self.method, self.group, self.band, self.slab, self.warp_rows, self.warp_columns, self.shared


@cache
def plan(dtype, m, n, k, transa, transb):
    """The Plan of a product, or None where the kernel is not for it."""
    found = candidates(dtype, m, n, k, transa, transb)
    return found[0] if found else None


def candidates(dtype, m, n, k, transa, transb):
    """Every Plan of a product, that of the fewest clocks first."""
    size, sizes, trans = np.dtype(dtype).itemsize, (m, n, k), (transa, transb)
    if min(sizes) < 1 or max(sizes) > LARGEST:
        return []
    if max(sizes) <= ROW_EDGES[1] and size <= ROW_ENTRY:
        bytes_of = [shared_bytes(dtype, sizes, trans, BY_ROWS, group, m, k) for group in range(1, 1 + ROW_THREADS // m)]
        group = max([1, *(group for group, count in enumerate(bytes_of, 1) if count <= GROUP_BYTES)])
        by_rows = [Plan(BY_ROWS, group, m, k, 1, 1, bytes_of[group - 1])]
    else:
        by_rows = []
    method = BY_TENSOR if np.dtype(dtype) == np.float64 else BY_LANES
    found = []
    for (band, slab), grid in product(_cuts(dtype, method, *sizes, trans), GRIDS):
        candidate = _planned(dtype, method, sizes, trans, band, slab, grid)
        cost = _cost(dtype, candidate, *sizes)
        if cost is not None:
            found.append((cost, candidate))
    others = [candidate for _, candidate in sorted(found, key=lambda pair: pair[0])]
    return by_rows + others if max(sizes) <= ROW_EDGES[0] else others[:1] + by_rows + others[1:]


def _cuts(dtype, method, m, n, k, trans):
    """Rows of a band and inner indices of a slab that may be taken."""
    whole = shared_bytes(dtype, (m, n, k), trans, method, 1, m, k)
    if whole <= WHOLE_BYTES:
        return [(m, k)]
    unit = TENSOR_TILE if method == BY_TENSOR else STRIP
    bands = {-(-m // (pieces * unit)) * unit for pieces in range(1, 6)}
    fits = [band for band in bands if shared_bytes(dtype, (m, n, k), trans, method, 1, band, SLAB) <= BLOCK_BYTES]
    return [(band, SLAB) for band in fits or [min(bands)]]


def _planned(dtype, method, sizes, trans, band, slab, grid):
    group = 1
    if band == sizes[0] and slab >= sizes[2]:
        for more in range(2, 1 + max(1, GROUP_WARPS // (grid[0] * grid[1]))):
            if shared_bytes(dtype, sizes, trans, method, more, band, slab) <= GROUP_BYTES:
                group = more
    return Plan(method, group, band, slab, *grid, shared_bytes(dtype, sizes, trans, method, group, band, slab))


def _cost(dtype, plan, m, n, k):
    """Clocks of a multiprocessor a matrix, or None where a thread's sums exceed its registers."""
    tensor, size = plan.method == BY_TENSOR, np.dtype(dtype).itemsize
    by_rows, by_columns = plan.warp_rows, plan.warp_columns
    rows, columns = -(-plan.band // (TENSOR_TILE if tensor else STRIP)), -(-n // STRIP)
    own_rows, own = -(-rows // by_rows), -(-rows // by_rows) * -(-columns // by_columns)
    sums = own * (4 if tensor else 2) * size // 4
    if sums > ACCUMULATORS or by_rows > rows or by_columns > columns:
        return None
    if tensor:
        products = -(-k // 4) * 4 / STRIP * TENSOR_CLOCKS
        reads = (by_columns * rows * TENSOR_TILE + by_rows * columns * STRIP) * k * size / 128
    else:
        complex_, double = np.dtype(dtype).kind == "c", size == (16 if np.dtype(dtype).kind == "c" else 8)
        products = 2 * k * (4 if complex_ else 1) * (2 if double else 1)
        reads = k * (by_columns * rows * STRIP * size / 128 + by_rows * columns * max(1, STRIP * size / 128))
    bands, warps = -(-m // plan.band), by_rows * by_columns
    moved = size * (m * k + bands * k * n + m * n) / MOVED_PER_CLOCK
    slowest = bands * products * own * max(1, warps / QUARTERS)
    needed = plan.threads(m) * (BESIDES + sums + own_rows * (8 if tensor else 4))
    resident = min(REGISTERS // needed, SHARED_BYTES // plan.shared)
    busy = max(bands * products * rows * columns / QUARTERS, bands * reads, moved)
    missing = max(0, ENOUGH_WARPS - max(1, resident) * plan.threads(m) // WARP)
    return (busy + LATENCY * slowest + READS * bands * reads) * ALONE.get(max(1, resident), 1) * (1 + LATE * missing)


def shared_bytes(dtype, sizes, trans, method, group, band, slab):
    """As FixedLayout counts: the stages with what reads of whole tiles reach, or the results."""
    (m, n, k), (transa, transb), size = sizes, trans, np.dtype(dtype).itemsize
    chunk, tensor, whole = WIDEST // size, method == BY_TENSOR, slab >= k
    inner = k if whole else slab
    rows_a, length_a = (inner, band) if tensor and transa else (band, inner)
    rows_b, length_b = (n, inner) if tensor and transb else (inner, n)
    leads = (m if transa else k), (k if transb else n)
    run = tensor and whole and band >= m and leads[0] % 2 == leads[1] % 2 == 1
    if run:
        pitch_a, pitch_b = leads
    elif tensor:
        pitch_a, pitch_b = ((length + 3) // 8 * 8 + 4 for length in (length_a, length_b))
    elif method == BY_LANES:
        pitch_a = (length_a + chunk - 1) // (2 * chunk) * 2 * chunk + chunk
        pitch_b = -(-length_b // max(chunk, 2)) * max(chunk, 2)
    else:
        pitch_a, pitch_b = length_a | 1, length_b | 1
    entries_a, entries_b = (
        -(-(group * rows * pitch + chunk) // chunk) * chunk for rows, pitch in ((rows_a, pitch_a), (rows_b, pitch_b))
    )
    more_rows = more_columns = 0
    if method != BY_ROWS:
        unit = TENSOR_TILE if tensor else STRIP
        more_rows, more_columns = -(-band // unit) * unit - band, -(-n // STRIP) * STRIP - n
    beyond_a = more_rows * (1 if tensor and transa else pitch_a) - entries_b
    beyond_b = more_columns * (pitch_b if tensor and transb else 1)
    deep = min(STAGES, -(-k // inner))
    stages = deep * (entries_a + entries_b) + max(beyond_a, beyond_b, 0)
    return size * max(stages, group * min(band, m) * n + chunk)
