"""Blocks and tiles of products of one shape, chosen by counting, not by trial: whole matrices, a group a block
(kernels/products/fixed_gemm.cuh), or slabs of inner indices that stream past resident sums (streamed_gemm.cuh).

Whole matrices: a block's clocks are the most of what its warps multiply, what they read from shared memory, and what it
moves; plans whose block leaves room for others on a multiprocessor are preferred, so that copies of one go on under the
products of another. Slabs: see fixed_work.py.
"""

from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np

from h2gpu.batched.products.fixed_layout import (
    BY_LANES,
    BY_ROWS,
    BY_TENSOR,
    STRIP,
    TENSOR_TILE,
    fringe_of,
    is_run,
    pitch_of,
    run_bytes,
    stage_bytes,
    whole_bytes,
)
from h2gpu.batched.products.fixed_work import BESIDES, BLOCK_BYTES, QUARTERS, REGISTERS, Work, streamed_clocks

WARP = 32
LARGEST = 160  # of rows, columns and inner indices
# by ptxas at most, most of them addresses of copies, away from the products
SPILL_BYTES = {np.float64: 20, np.float32: 96, np.complex64: 24, np.complex128: 44}
MEASURED_SPILL_BYTES = 256  # likewise, of plans that were measured as the fastest all the same
ROW_EDGES, ROW_ENTRY = (12, 16), 8  # matrices take a thread a row up to the first, may up to the second; bytes
ROW_THREADS, GROUP_WARPS = 128, 4  # of a block, about
GROUP_BYTES, WHOLE_BYTES = 37 << 10, 72 << 10  # shared memory of a group of matrices, of one whole matrix
WHOLE, SLAB_BYTES = 64, 33 << 10  # larger ones in slabs if they take more bytes, but for float32 that comes as a run
VECTOR_PIPE = 33**3  # m n k of float32 up to which it multiplies nearly as fast as memory brings: beyond, parts of TF32
SLABS = 16, 24, 32, 40, 48  # inner indices at a time, where slabs stream
BESIDES_HALVES = 36  # others: slabs by FixedProduct::HALVES
BESIDES_STREAMS = {8: 48, 4: 64}  # slabs; by bytes of an entry
SHARED_BYTES = 227 << 10  # of a multiprocessor
MOVED_PER_CLOCK = 20  # bytes that a multiprocessor moves, where blocks hold whole matrices
ALONE = {1: 1.6, 2: 1.1}  # how much longer so few blocks a multiprocessor take that hold whole matrices
LATENCY, READS = 0.03, 0.3  # weights of a block's own time, of reads from shared memory
UNEVEN = 0.05  # how much longer, for rows and for strips of tiles of which some warps have less: more pieces of code
ENOUGH_WARPS, LATE = 12, 0.05  # of a multiprocessor; how much longer it takes for each warp missing
GRIDS = tuple((r, c) for r, c in product((1, 2, 4), (1, 2, 4, 8)) if r * c in (1, 2, 4, 8))
OTHER_GRIDS = tuple((r, c) for r, c in product(range(1, 8), range(1, 8)) if r * c < 9 and (r, c) not in GRIDS)
LARGE_GRIDS = tuple((r, c) for r, c in product(range(1, 9), range(1, 9)) if r * c in range(4, 17))  # beyond WHOLE_BYTES
STREAM_WARPS, MOST_BLOCKS, FEWEST_WARPS = range(4, 21), 4, 8  # of a block that streams; of a multiprocessor
STAGES = 4, 3, 2  # slabs in its ring
# of a measured plan
KNOBS = "method", "group", "band", "slab", "warp_rows", "warp_columns", "stages", "resident", "fringe"


@dataclass(frozen=True)
class Plan:
    """Matrices and rows a block, inner indices a slab, warps along rows and columns, shared bytes.

    streams   slabs pass, and `resident` blocks a multiprocessor stay for all matrices
    fringe    one or two last rows and columns are no parts of tiles
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
    fringe: bool = False

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

    def excess(self, dtype, m, n):
        """Entries computed beyond the edges of C, as a fraction of those that count."""
        if self.method == BY_ROWS:
            return 0.0
        tall, wide = TENSOR_TILE if self.method == BY_TENSOR else STRIP, STRIP
        rows, columns = fringe_of(m, n) if self.fringe else (0, 0)
        tiled = (m - rows) * (n - columns)
        bands = [min(self.band, m - row) - rows for row in range(0, m, self.band)]
        if self.streams:
            tall, wide, bands = tall * self.warp_rows, wide * self.warp_columns, [self.band - rows] * len(bands)
        return (sum(pitch_of(band, tall, 0) for band in bands) * pitch_of(n - columns, wide, 0) - tiled) / (m * n)

    @property
    def kernel(self):
        """The kernel's name, and that of its header in kernels/products."""
        return "streamed_gemm" if self.streams else "fixed_gemm"

    @property
    def arguments(self):
        """Of the template, in its order, behind shape and transposes."""
        grid = self.warp_rows, self.warp_columns
        if self.streams:
            return self.method, self.band, self.slab, *grid, self.fringe, self.shared, self.resident
        return self.method, self.group, *grid, self.fringe, self.shared

    @classmethod
    def of(cls, row, dtype, n):
        """The Plan of n × n × n that a row of kernels/tuning/<device>/fixed_gemm.csv has measured."""
        method, group, band, slab, *grid, stages, resident, fringe = (row[knob] for knob in KNOBS)
        sizes, trans = (n, n, n), (False, False)
        if stages:
            shared = stages * stage_bytes(dtype, sizes, trans, method, band, slab, grid, fringe=fringe)
        else:
            shared = whole_bytes(dtype, sizes, trans, method, group, fringe)
        return cls(method, group, band, slab, *grid, shared, stages > 0, resident, fringe > 0)

    def knobs(self, dtype, n):
        """The row again, without what was measured."""
        sizes, trans, grid = (n, n, n), (False, False), (self.warp_rows, self.warp_columns)
        stages = self.streams and self.shared // stage_bytes(
            dtype, sizes, trans, self.method, self.band, self.slab, grid, fringe=self.fringe
        )
        values = self.method, self.group, self.band, self.slab, *grid, int(stages), self.resident, int(self.fringe)
        return dict(zip(KNOBS, values))


def of_one(plan, dtype, m, k, trans):
    """The Plan of A Aᵀ for A m × k (trans: Aᵀ A, k × m), and whether A is in shared memory once, not twice."""
    if plan.streams or plan.method != BY_TENSOR:
        return plan, False
    shared = whole_bytes(dtype, (m, m, k), (trans, not trans), plan.method, plan.group, plan.fringe, True)
    return replace(plan, shared=shared), True


@cache
def plan(dtype, m, n, k, transa, transb):
    """The Plan of a product that the model finds fastest, or None where the kernels are not for it."""
    found = candidates(dtype, m, n, k, transa, transb)
    return found[0] if found else None


def candidates(dtype, m, n, k, transa, transb):
    """Every Plan of a product: those of the kernel for it, that of the fewest clocks first, then those of the other."""
    return [plan for family in families(dtype, m, n, k, transa, transb) for _, plan in family]


def families(dtype, m, n, k, transa, transb, method=None):
    """The same as lists of (clocks, Plan), which are not to be compared with each other; the last are for tuning alone.

    method   of the warps, if not that for the sizes
    """
    size, sizes, trans = np.dtype(dtype).itemsize, (m, n, k), (transa, transb)
    if min(sizes) < 1 or max(sizes) > LARGEST:
        return []
    if max(sizes) <= ROW_EDGES[1] and size <= ROW_ENTRY:
        bytes_of = [whole_bytes(dtype, sizes, trans, BY_ROWS, group) for group in range(1, 1 + ROW_THREADS // m)]
        group = max([1, *(group for group, count in enumerate(bytes_of, 1) if count <= GROUP_BYTES)])
        by_rows = [(0, Plan(BY_ROWS, group, m, k, 1, 1, bytes_of[group - 1]))]
    else:
        by_rows = []
    parts = np.dtype(dtype) == np.float32 and m * n * k > VECTOR_PIPE
    method = method or (BY_TENSOR if np.dtype(dtype) == np.float64 or parts else BY_LANES)
    own = whole_bytes(dtype, sizes, trans, method, 1)
    runs, fits = is_run(method, m if transa else k, k if transb else n), own <= WHOLE_BYTES
    run = runs and size == 4 and max(sizes) > WHOLE
    if fits:
        grids = (GRIDS + OTHER_GRIDS, ()) if run else (GRIDS, OTHER_GRIDS)
    else:
        grids = (), LARGE_GRIDS if runs and own <= SHARED_BYTES - BLOCK_BYTES else ()
    whole, others = ([_whole(dtype, method, sizes, trans, grid) for grid in some] for some in grids)
    found = [whole, _streams(dtype, method, sizes, trans)]
    if max(sizes) > WHOLE and own > SLAB_BYTES and not (run and fits):
        found.reverse()
    found = [sorted(filter(None, some), key=lambda pair: pair[0]) for some in (*found, others)]
    found.insert(0 if max(sizes) <= ROW_EDGES[0] else 1, by_rows)
    return [family for family in found + _fringed(dtype, method, sizes, trans, sum(grids, ())) if family]


def _fringed(dtype, method, sizes, trans, grids):
    """The lists of the plans with a fringe."""
    m, n, _ = sizes
    if method != BY_TENSOR or m <= TENSOR_TILE or n <= STRIP or not any(fringe_of(m, n)):
        return []
    found = (
        [_whole(dtype, method, sizes, trans, grid, True) for grid in grids],
        _streams(dtype, method, sizes, trans, True),
    )
    return [sorted(filter(None, some), key=lambda pair: pair[0]) for some in found]


def _whole(dtype, method, sizes, trans, grid, fringe=False):
    """(clocks of a multiprocessor a matrix, plan), or None where a thread's sums exceed its registers."""
    m, n, k = sizes
    group = 1
    for more in range(2, 1 + max(1, GROUP_WARPS // (grid[0] * grid[1]))):
        if whole_bytes(dtype, sizes, trans, method, more, fringe) <= GROUP_BYTES:
            group = more
    plan = Plan(method, group, m, k, *grid, whole_bytes(dtype, sizes, trans, method, group, fringe), fringe=fringe)
    work = Work(dtype, method, sizes, m, grid, fringe=fringe_of(m, n) if fringe else (0, 0))
    if work.registers is None:
        return None
    needed = plan.threads(m) * (BESIDES + work.registers)
    resident = max(1, min(REGISTERS // needed, (SHARED_BYTES - BLOCK_BYTES) // plan.shared))
    moved = np.dtype(dtype).itemsize * (m * k + k * n + m * n) / MOVED_PER_CLOCK
    slowest = work.largest * max(1, grid[0] * grid[1] / QUARTERS)
    missing = max(0, ENOUGH_WARPS - resident * plan.threads(m) // WARP)
    clocks = max(work.even, work.reads, moved) + LATENCY * slowest + READS * work.reads
    pieces = max(sizes) > WHOLE and work.uneven
    return clocks * ALONE.get(resident, 1) * (1 + LATE * missing) * (1 + UNEVEN * pieces), plan


def _streams(dtype, method, sizes, trans, fringe=False):
    """All (clocks of a multiprocessor a matrix, plan) with slabs in a ring."""
    (m, n, k), size, tensor = sizes, np.dtype(dtype).itemsize, method == BY_TENSOR
    rows, columns = fringe_of(m, n) if fringe else (0, 0)
    unit, slabs = TENSOR_TILE if tensor else STRIP, {min(slab, pitch_of(k, STRIP, 0)) for slab in SLABS}
    grids = [(r, c) for r, c in product(range(1, 9), range(1, 17)) if r * c in STREAM_WARPS]
    for pieces, grid in product((1,) if fringe else range(1, 6), grids):
        band = m if pieces == 1 else -(-m // (pieces * unit)) * unit
        work = Work(dtype, method, (min(band, m), n, k), band, grid, True, (rows, columns))
        if work.registers is None or (fringe and work.uneven):  # tiles would reach over the fringe
            continue
        warps, scratch = grid[0] * grid[1], run_bytes(dtype, method, n, grid[1], n - columns)
        most = _resident(warps, BESIDES_STREAMS[size if tensor else 4] + work.registers)
        most = most or _resident(warps, BESIDES_HALVES + work.halves)
        for slab in sorted(slabs):
            stage = stage_bytes(dtype, sizes, trans, method, band, slab, grid, fringe=fringe)
            if warps * scratch > stage:
                continue
            for resident, stages in product(range(-(-FEWEST_WARPS // warps), 1 + most), STAGES):
                if resident * (stages * stage + BLOCK_BYTES) <= SHARED_BYTES:
                    plan = Plan(method, 1, band, slab, *grid, stages * stage, True, resident, fringe)
                    yield streamed_clocks(work, dtype, sizes, trans, plan, stages), plan


def _resident(warps, registers):
    """Blocks of a multiprocessor, each of whose quarters has its part of the registers."""
    return min(MOST_BLOCKS, REGISTERS // QUARTERS // (registers * WARP) * QUARTERS // warps)
