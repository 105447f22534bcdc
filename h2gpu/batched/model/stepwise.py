"""Kernels whose time is that of steps one after another and of products: two constants each, fitted to measured tables.

    t = launches + reads + bytes / β + step · steps + flop · flops

steps     what a multiprocessor does one after another: pivots, rounds of a warp or blocks, in all of its waves
flops     multiplications and additions, of whole tiles, of what the busiest multiprocessor has

Bytes, steps and flops are counted; `step` and `flop`, seconds of one, stand for the chain of latencies and the rate
that a kernel reaches. `python -m h2gpu.apps.autotune.fit_model` puts them into model_fitted.csv of the device.
Reference: Abdelfattah et al. (2019) for LU in steps; the notes in benchmarks/batched for how near it comes.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np

from h2gpu.batched.device import tuning
from h2gpu.batched.products.choice import by_blocks, symmetric_limits

ROUTINES = ("gemv", "symv", "syrk", "trsm", "lu_factor")
READS = 2  # that are waited for, before the first step
RUN_ROW = 384  # bytes of a row of a symmetric matrix that is read whole: h2gpu.batched.products.vectors
EDGES, FULL, SLAB = (
    (16, 32, 48, 64, 80),
    64,
    16,
)  # of tiles of products: h2gpu.batched.products.gemm; of their inner pieces
TILE, COLUMNS = 16, 128  # of trsm_columns: rows of a tile, right-hand sides of a block
HELD_WARPS = {8: 8, 4: 16}  # bytes of a number: warps whose registers a multiprocessor holds, of kernels that need many
PANEL_WARPS, CHOLESKY_PANEL, CHOLESKY_HELD, TOGETHER, LAUNCHES = 16, 32, 8, 64, 4  # of LU and Cholesky by panels
WARP, REGISTER_MATRICES, MANY = 32, (32, 64), 2000  # matrices of cholesky_register at a time: of few, of many
SWEEP_BLOCKS, PAIR = 3, 64  # of svd_gram: blocks of a multiprocessor; columns of two blocks


@dataclass(frozen=True)
class Work:
    """What a batch asks of a kernel. shares: the kernel whose `flop` it has, "" for its own."""

    kernel: str
    nbytes: float
    steps: float = 0
    flops: float = 0
    launches: int = 1
    shares: str = ""


def seconds(work, dtype, constants):
    """The time of a batch."""
    real = np.dtype(dtype).name
    found = work.launches * constants("launch") + READS * constants("global_latency")
    found += work.nbytes / constants("copy_rate")
    found += constants(f"{work.kernel}_step", real) * work.steps if work.steps else 0.0
    return found + (constants(f"{work.shares or work.kernel}_flop", real) * work.flops if work.flops else 0.0)


def counted(routine, batch, m, n, columns, dtype, device, multiprocessors):
    """The Work of a batch on a device; None where no kernel is counted."""
    size, folder = np.dtype(dtype).itemsize, tuning.folder_name(device)
    place = _Place(batch, multiprocessors, folder, np.dtype(dtype))
    if routine == "gemv":
        return Work("gemv", batch * (m * n + m + n) * size)
    if routine == "syrk":
        return _syrk(place, m, n)
    if m != n:
        return None
    return {"symv": _symv, "trsm": _trsm, "lu_factor": _lu, "cholesky": _cholesky, "svd": _svd}[routine](
        place, n, columns
    )


@dataclass(frozen=True)
class _Place:
    """A batch on a device."""

    batch: int
    multiprocessors: float
    folder: str
    dtype: np.dtype

    @property
    def size(self):
        return self.dtype.itemsize

    def waves(self, resident, batch=None):
        """How often a multiprocessor holds as many blocks as it can, until all are done."""
        return ceil(ceil((batch or self.batch) / self.multiprocessors) / max(1, resident))

    @property
    def busiest(self):
        """Matrices, were all multiprocessors as busy as the busiest."""
        return ceil(self.batch / self.multiprocessors) * self.multiprocessors

    def row(self, table, **sizes):
        """The device's knobs, None where the table ends."""
        try:
            return tuning.first_row(self.folder, table, self.dtype, **sizes)
        except LookupError:
            return None


def _symv(place, n, _):
    if n * place.size <= RUN_ROW:
        return Work("gemv", place.batch * (n * n + 2 * n) * place.size)
    row = place.row("symv", rows=n)
    warps, panel = row["warps"], row["steps"] * WARP  # columns at a time
    groups = sum(ceil(n / 8) - first // 8 for first in range(0, n, panel))  # of 8 rows
    steps = ceil(groups / warps) * place.waves(32 // warps if warps < 4 else 8)
    nbytes = place.batch * (n * (n + WARP) / 2 + 2 * n) * place.size
    return Work("symv", nbytes, steps, place.busiest * groups * 8 * panel)


def _syrk(place, n, k):
    nbytes = place.batch * (n * k + n * n) * place.size
    row = place.row("syrk", **symmetric_limits(place.batch, n, k, True))
    method = row["method"] if row else "tiles"
    if method == "entries":  # for any small number of inner indices
        return Work("syrk_entries", nbytes, place.batch * n * n)
    edge = n if n <= EDGES[-1] else ceil(n / ceil(n / FULL))
    edge = next(e for e in EDGES if edge <= e)
    tiles = place.batch * ceil(n / edge) * (ceil(n / edge) + 1) // 2
    flops = tiles * 2 * edge**2 * ceil(k / SLAB) * SLAB
    return Work("syrk", nbytes, tiles, flops) if method == "tiles" else Work("syrk_fixed", nbytes, flops=flops)


def _trsm(place, n, columns):
    row = place.row("trsm", rows=n, columns=columns)
    if row["method"] != "columns" or by_blocks(place.batch, n, columns):
        return None
    whole, blocks = (ceil(n / TILE) * TILE) ** 2, place.batch * ceil(columns / COLUMNS)
    nbytes = place.batch * (n * n / 2 + 2 * n * columns) * place.size
    return Work("trsm", nbytes, blocks * whole, place.batch * columns * whole)  # a step: an entry of a triangle comes


def _lu(place, n, _):
    nbytes, row = 2 * place.batch * n * n * place.size, place.row("lu_shared", rows=n)
    if row is None:
        return _panels(place, n)
    if row["panel"] == WARP and n <= WARP:
        resident = row["resident"] * row["warps"]
        if place.batch > resident * place.multiprocessors:
            return None  # a kernel for many
        return Work("lu_warp", nbytes, n)
    resident = max(row["resident"], HELD_WARPS[place.size] // row["warps"])
    return Work("lu_shared", nbytes, n * place.waves(resident), place.busiest * 2 / 3 * n**3)


def _panels(place, n):
    """lu_panel, lu_rows and lu_update, panel after panel; what is behind several panels is read and written once."""
    row = place.row("lu_panel", rows=n)
    if row is None:
        return None
    width, steps, moved = row["width"], 0, 2 * n * n
    starts = range(0, n, width)
    for first in starts:
        rows = n - first
        steps += width * place.waves(2 * HELD_WARPS[place.size] // min(PANEL_WARPS, ceil(rows / WARP)))
        moved += 2 * rows * width
        if (first + width) % TOGETHER == 0:
            moved += 2 * (rows - width) ** 2
    launches = 1 + LAUNCHES * len(starts)
    return Work("lu_panel", place.batch * moved * place.size, steps, place.batch * 2 / 3 * n**3, launches)


def _cholesky(place, n, _):
    nbytes = 1.5 * place.batch * n * n * place.size
    if n <= WARP:
        steps = n * place.waves(REGISTER_MATRICES[place.batch >= MANY])
        return Work("cholesky_register", nbytes, steps, place.batch * n**3 / 3)
    row = place.row("cholesky_shared", rows=n)
    if row and n * n * place.size < 1 << 18:
        return Work(
            "cholesky_shared", nbytes, n * place.waves(row["resident"]), place.busiest * n**3 / 3, 1, "lu_shared"
        )
    starts = range(0, n, CHOLESKY_PANEL)
    moved = 1.5 * n * n + sum(64 * (n - first) for first in starts)
    moved += sum((n - first - CHOLESKY_PANEL) ** 2 for first in starts if first % TOGETHER)
    steps, launches = n * place.waves(CHOLESKY_HELD), 1 + 2 * len(starts)
    nbytes = place.batch * moved * place.size
    return Work("cholesky_panel", nbytes, steps, place.batch * n**3 / 3, launches, "lu_panel")


def _svd(place, n, _):
    """Left vectors. A step is a round of all columns in pairs, or of all pairs of blocks."""
    row = place.row("svd", rank=n)
    if row["method"] == "shared":
        resident = {8: 2, 4: 3}[place.size] - (n > 64)
        return Work("svd_shared", 0, (n - 1 + n % 2) * place.waves(resident), place.busiest * n**3)
    pairs = ceil(n / PAIR)
    return Work("svd_gram", 0, (2 * pairs - 1) * place.waves(SWEEP_BLOCKS, place.batch * pairs), place.batch * n**3)
