"""Q_b R_b = A_b on the GPU by blocks of reflections: kernels/qr/blocked_qr.cuh.

The rows of a matrix must fit in the registers of a thread block, columns may be as many as they like. The table
tuning/…/qr_blocked.csv says which sizes come here and how many rows a thread block holds: warps · tiles · 8.
"""

from functools import lru_cache
from typing import NamedTuple

import cupy
import numpy as np

from h2gpu.batched.device import tuning
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, launch
from h2gpu.batched.device.limits import multiprocessors

PANEL, TILE_ROWS = 16, 8  # the kernels' constants
COLUMN_EDGES = (8, 16, 32, 64, 128)  # limits of columns in the table, and of rows: classes of a ragged batch
ROW_EDGES = (32, 64, 128, 256, 512, 1024, 2048)
UNLIMITED = 10**9  # in the table
WORKSPACE = 4 << 30  # bytes at most where every matrix has its own
CACHED, MOST_GROUPS = 24 << 20, 4  # bytes of reflectors that stay near for a group; in more groups no end is worth it


class Plan(NamedTuple):
    """One way to launch: the kernels for R and Q, threads of a block, resident blocks, and layers of rows."""

    factor: object
    form: object
    warps: int
    shared: int
    blocks: int
    split: bool

    def stride(self, m, n):
        """Entries of a workspace for reflectors of matrices up to m × n."""
        layers, panels = -(-m // (self.warps * TILE_ROWS)), -(-min(m, n) // PANEL)
        return panels * (layers * self.warps * TILE_ROWS * PANEL + PANEL**2)


def _row(dtype, m, n, batch):
    """The tuning row; None where others are faster, or where it does not fit."""
    try:
        row = tuning.row("qr_blocked", dtype, columns=n, rows=m, matrices=batch)
    except LookupError:
        return None
    return row if row["warps"] else None


@lru_cache(maxsize=1024)
def plan(device, dtype, m, n, batch):
    """How to launch `batch` matrices of at most m × n on the current device; None where others are faster."""
    row = _row(dtype, m, n, batch)
    if row is None:
        return None
    warps, tiles, resident = (row[key] for key in ("warps", "tiles", "resident"))
    if not warps:
        return None
    shared = shared_bytes(dtype, warps, tiles)
    instance = dtype, warps, tiles, resident
    factor, form = (
        kernel("qr/blocked_qr.cuh", name, *instance, shared_bytes=shared) for name in ("blocked_qr", "blocked_q")
    )
    blocks = resident * multiprocessors(device)
    return Plan(factor, form, warps, shared, blocks, bool(row["split"]))


def shared_bytes(dtype, warps, tiles):
    """The kernels' StripMemory."""
    entries = warps * tiles * TILE_ROWS * (PANEL + 1) + (warps + 1) * PANEL * (PANEL + 2) + PANEL * (PANEL + 1)
    return -(-(entries * dtype.itemsize + 4 * warps) // PANEL) * PANEL


def run(plan, A, Q, R, table, batch, m, n):
    """Launch for `batch` matrices m × n, or where table isn't null for a ragged batch of at most m × n."""
    stride = plan.stride(m, n)
    split = plan.split and Q is not None and batch * stride * A.dtype.itemsize <= WORKSPACE
    blocks = batch if split else min(batch, plan.blocks)
    workspace = cupy.empty(blocks * stride, A.dtype)
    shape = (0, 0) if isinstance(table, cupy.ndarray) else (m, n)
    arguments = (A, NULL if Q is None else Q, R, table, np.int64(batch), *shape, workspace, np.int64(stride))
    threads = plan.warps * WARP
    launch(plan.factor, blocks, threads, (*arguments, np.bool_(Q is not None and not split)), plan.shared)
    if split:
        strips = -(-min(m, n) // PANEL)
        together = _together(batch, batch * stride * A.dtype.itemsize)
        launch(plan.form, batch * strips, threads, (*arguments, strips, together), plan.shared)


def _together(batch, size):
    """Of how many matrices the longest strips come first, so that none of them begins last; size: of all, in bytes."""
    groups = -(-size // CACHED)
    return -(-batch // groups) if groups <= MOST_GROUPS else 1


@lru_cache(maxsize=64)
def _classes(device, dtype, batch):
    """For every class of columns and of rows the class of rows if its matrices come here, else −1."""
    columns, rows = (*COLUMN_EDGES, UNLIMITED), (*ROW_EDGES, UNLIMITED)
    here = [[_row(dtype, m, n, batch) is not None for m in rows] for n in columns]
    return np.where(here, np.arange(len(rows)), -1)


def classes(device, dtype, rows, columns, batch):
    """A number for sizes in a ragged batch: those of one are launched together, −1 for those not to come here."""
    table = _classes(device, dtype, batch)
    return table[np.searchsorted(COLUMN_EDGES, columns), np.searchsorted(ROW_EDGES, rows)]
