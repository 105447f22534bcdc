"""Clocks of a multiprocessor that a plan of fixed_plans.py takes, by counting what its warps do.

Slabs that stream: the most of what tensor cores, issue, shared memory and memory each need and of what a block does one
after the other, and a part of the rest. Constants fitted to 368 measured plans of 65 … 160, float64 within 4 %, float32
within 5 %, the median. Copies of less than 16 bytes pass the first-level cache, so that no more of them are on their
way than it holds, what shared memory leaves of 256 KiB: rings of 183 KB beat those of 227 KB by 15 % (float64 145).
"""

from math import gcd

import numpy as np

from h2gpu.batched.products.fixed_layout import BY_TENSOR, SECTOR, STRIP, TENSOR_TILE, WIDEST, pitch_of

WARP = 32
QUARTERS = 4  # parts of a multiprocessor
REGISTERS = 1 << 16  # of a multiprocessor
BLOCK_BYTES = 1 << 10  # of shared memory that each block takes besides
ACCUMULATORS = 160  # registers of a thread for sums, at most
BESIDES = 56  # for others (REGISTERS_BESIDES of the kernel)
FACTORS = {8: 8, 4: 12}  # for a tile of rows, float32 with its parts of TF32
TENSOR_CLOCKS = {8: 32, 4: 24}  # of a quarter: a 16 × 8 × 8 product, float32 in three parts of TF32
VALUE_ISSUES, TILE_ISSUES = {8: 1, 4: 5}, {8: 3, 4: 7}  # instructions a factor's entry (with its parts), a product
# where slabs stream, by bytes of an entry where those differ
MOVED = 24  # bytes a clock
CARVED = tuple(size << 10 for size in (32, 64, 100, 132, 164, 196, 228))  # shared memory that the GPU can set apart
CACHE = 256 << 10  # that and the first-level cache
RING_BYTES, CACHE_BYTES = 60 << 10, 42 << 10  # on their way for the full speed of memory
OWN = 1.27  # how much longer a warp takes for its products than alone
COPY, NARROW = {8: 28, 4: 17}, 2  # clocks a copy of a thread; times those, if of less than 16 bytes
OVERLAP = {8: 0.34, 4: 0.3}  # part that the lesser works add
RUNS = {8: 7, 4: 14}  # clocks for 32 sums that leave in runs
SLAB_CLOCKS = {8: 5, 4: 62}  # a slab and warp
TWO, HALVED = {8: 0.11, 4: 0.02}, 0.05  # how much longer rings of two stages take; FixedProduct::HALVES


class Work:
    """What a block's warps do for a band of one matrix, in clocks; registers: of a thread, for sums and factors.

    as_many   warps take tiles
    fringe    last rows and columns that are no parts of tiles
    """

    def __init__(self, dtype, method, sizes, band, grid, as_many=False, fringe=(0, 0)):
        (_, n, k), size, (by_rows, by_columns) = sizes, np.dtype(dtype).itemsize, grid
        tensor, (more_rows, more_columns) = method == BY_TENSOR, fringe
        unit = TENSOR_TILE if tensor else STRIP
        rows, columns = -(-(band - more_rows) // unit), -(-(n - more_columns) // STRIP)
        own_rows, own_columns = -(-rows // by_rows), -(-columns // by_columns)
        sums = own_rows * own_columns * (4 if tensor else 2) + more_rows * -(-own_columns // by_rows)
        sums = (sums + 2 * more_columns * -(-own_rows // by_columns) + more_rows * more_columns) * size // 4
        fits = sums <= ACCUMULATORS and by_rows <= rows and by_columns <= columns
        self.uneven = (rows % by_rows > 0) + (columns % by_columns > 0)
        self.registers = sums + own_rows * (FACTORS[size] if tensor else 4) if fits else None
        self.halves = sums + own_rows * 4 if fits and tensor and size == 8 else REGISTERS
        if as_many:
            rows, columns, k = own_rows * by_rows, own_columns * by_columns, pitch_of(k, STRIP, 0)
        if tensor:
            each = -(-k // 4) * 4 / STRIP * TENSOR_CLOCKS[size]
            values = 4 * own_rows + 2 * own_columns
            self.issues = k / STRIP * (VALUE_ISSUES[size] * values + TILE_ISSUES[size] * own_rows * own_columns)
            self.reads = (by_columns * rows * TENSOR_TILE + by_rows * columns * STRIP) * k * size / 128
            beside = more_rows + more_columns  # of whose factors a lane reads two a step
            self.issues += 2 * k / STRIP * (beside + more_rows * own_columns + 2 * more_columns * own_rows)
            self.reads += 2 * k / STRIP * beside * by_rows * by_columns
        else:
            complex_, double = np.dtype(dtype).kind == "c", size == (16 if np.dtype(dtype).kind == "c" else 8)
            each, self.issues = 2 * k * (4 if complex_ else 1) * (2 if double else 1), 0
            self.reads = k * (by_columns * rows * STRIP * size / 128 + by_rows * columns * max(1, STRIP * size / 128))
        self.largest, self.even = each * own_rows * own_columns, each * rows * columns / QUARTERS


def streamed_clocks(work, dtype, sizes, trans, plan, stages):
    """Clocks a matrix, of a Plan whose slabs stream through so many stages."""
    (m, n, k), size, tensor = sizes, np.dtype(dtype).itemsize, plan.method == BY_TENSOR
    warps, resident, key = plan.warp_rows * plan.warp_columns, plan.resident, 8 if tensor and size == 8 else 4
    bands, slabs = -(-m // plan.band), -(-k // plan.slab)
    copies, wide = _copies(size, sizes, trans, plan, tensor)
    ring = resident * (stages - 1) * plan.shared // stages
    cache = CACHE - min(carved for carved in CARVED if carved >= resident * (plan.shared + BLOCK_BYTES))
    late = max(1, RING_BYTES / ring, 0 if wide else CACHE_BYTES / cache)
    busiest = -(-resident * warps // QUARTERS) / resident  # warps a block, of the busiest quarter
    own = bands * (OWN * (work.largest + work.issues) + COPY[key] * slabs * copies)
    parts = (
        bands * work.largest * (busiest + warps / QUARTERS) / 2,  # half as if warps of all blocks took turns
        bands * work.issues * warps / QUARTERS,
        bands * work.reads,
        size * (m * k + bands * k * n + m * n) / MOVED * late,
        RUNS[key] * m * n / WARP if tensor and n * size % SECTOR else 0,
        own / resident,
    )
    clocks = max(parts) + OVERLAP[key] * (sum(parts) - max(parts)) + bands * slabs * warps * SLAB_CLOCKS[key]
    threads = pitch_of(warps, QUARTERS, 0) * WARP
    halves = tensor and size == 8 and (BESIDES + work.registers) * threads > REGISTERS
    return clocks * (1 + TWO[key] * (stages == 2) + HALVED * halves)


def _copies(size, sizes, trans, plan, tensor):
    """Clocks, in units of COPY, of a thread's copies for a slab; whether all are of 16 bytes."""
    (m, n, k), threads = sizes, plan.threads(sizes[0])
    factors = (plan.band, plan.slab, k, m, trans[0]), (plan.slab, n, n, k, trans[1])
    clocks, all_wide = 0, True
    for rows, length, lead, lead_turned, turned in factors:
        if turned:
            rows, length, lead = length, rows, lead_turned
        piece = gcd(WIDEST, lead * size, length * size) if tensor or not turned else size
        clocks += -(-rows * (length * size // piece) // threads) * (1 if piece == WIDEST else NARROW)
        all_wide = all_wide and piece == WIDEST
    return clocks, all_wide
