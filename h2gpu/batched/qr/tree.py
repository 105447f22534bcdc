"""R_b of tall A_b = Q_b R_b on the GPU, Q never formed, by a tree of triangles: kernels/qr/tree_qr.cuh.

However few matrices there are, their pieces fill the device. The table tuning/…/qr_tree.csv says which numbers of
columns and of matrices come here, how many thread blocks share a piece, and how many rows it has at most:
warps · tiles · 8, at least twice the columns. It has more strips of columns than blocks.
"""

from functools import lru_cache
from typing import NamedTuple

import cupy
import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.offsets import ranges
from h2gpu.batched.device import tuning
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, launch, upload
from h2gpu.batched.device.limits import multiprocessors
from h2gpu.batched.qr.blocked import PANEL, TILE_ROWS, shared_bytes

COLUMN_EDGES = (64, 128, 256, 512)  # limits of columns in the table: classes of a ragged batch
NEVER = np.iinfo(np.int64).max  # rows


class Plan(NamedTuple):
    """The kernel's instance, warps of a block, its shared memory, resident teams, their blocks, rows of a piece."""

    instance: tuple
    warps: int
    shared: int
    teams: int
    share: int
    rows: int

    def reflectors(self, m, n):
        """Entries for those of a piece of at most m × n."""
        layer, panels = self.warps * TILE_ROWS, -(-n // PANEL)
        return panels * (-(-m // layer) * layer * PANEL + PANEL**2)

    def pieces(self, m, n):
        """Of matrices m × n, all high: so many that no team is idle in the last round, of no fewer than 2 n rows."""
        least = -(-m // self.rows)
        places = -(-int(least.sum()) // self.teams) * self.teams
        return np.maximum(least, np.minimum(m * places // m.sum(), m // (2 * n)))


@lru_cache(maxsize=1024)
def _plans(device, dtype, matrices):
    """For every class of columns the way to take on the current device, None where not this one."""
    return [_plan(device, dtype, n, matrices) for n in COLUMN_EDGES] + [None]


def _plan(device, dtype, n, matrices):
    row = tuning.row("qr_tree", dtype, columns=n, matrices=matrices)
    warps, tiles, resident, share = (row[key] for key in ("warps", "tiles", "resident", "share"))
    if not warps:
        return None
    blocks = resident * multiprocessors(device)
    instance, share = (dtype, warps, tiles, resident), min(share, blocks)
    return Plan(instance, warps, shared_bytes(dtype, warps, tiles), blocks // share, share, warps * tiles * TILE_ROWS)


def high(dtype, rows, columns, matrices):
    """Which matrices of a batch of so many are too high for one block, and come here: indices."""
    limits = np.array([NEVER if plan is None else plan.rows for plan in _plans(cupy.cuda.Device().id, dtype, matrices)])
    if rows.max(initial=0) <= limits.min():
        return np.zeros(0, np.int64)
    return np.flatnonzero(rows > limits[np.searchsorted(COLUMN_EDGES, columns)])


def run(A, R, matrices):
    """R_b of A_b into place, all of them high, of a batch of so many; sizes are on the host."""
    classes = np.searchsorted(COLUMN_EDGES, A.columns)
    plans = _plans(cupy.cuda.Device().id, A.dtype, matrices)
    for c in np.unique(classes):
        members = np.flatnonzero(classes == c)
        _climb(plans[c], A[members], R[members])


def _climb(plan, A, R):
    """Level by level: triangles of the pieces, row by row one of each, are the matrices of the next."""
    triangles = None  # of which the matrices of a level are made
    while len(A):
        pieces = plan.pieces(A.rows, A.columns) if triangles is None else -(-A.rows // plan.rows)
        split = pieces > 1
        above = MatrixBatch.empty((pieces * A.columns)[split], A.columns[split], A.dtype, cupy)
        targets = R.offsets.copy()
        targets[split] = above.offsets
        owner, number = np.repeat(np.arange(len(A)), pieces), ranges(np.zeros(len(A), np.int64), pieces)
        p, m, n = pieces[owner], A.rows[owner], A.columns[owner]
        growth = m if triangles is None else -(-PANEL * triangles[owner] // p)
        rows, skip = -(-(m - number) // p), number * n
        table = np.stack([A.offsets[owner] + skip, targets[owner] + skip, rows, n, p * n, growth])
        order = np.argsort(-rows * n**2, kind="stable")  # the longest first
        _launch(plan, A, R, above, upload(*table[:, order]), int(rows.max()), int(n.max()))
        A, R, triangles = above, R[np.flatnonzero(split)], pieces[split]


def _launch(plan, A, R, above, table, m, n):
    count, stride = table.shape[1], plan.reflectors(m, n)
    teams, following = min(count, plan.teams), above.buffer if len(above) else NULL
    workspace, made = cupy.empty(2 * teams * stride, A.dtype), cupy.zeros(count, np.int32)
    arguments = A.buffer, R.buffer, following, table, np.int64(count), plan.share, workspace, np.int64(stride), made
    function = kernel("qr/tree_qr.cuh", "tree_qr", *plan.instance, shared_bytes=plan.shared)
    launch(function, teams * plan.share, plan.warps * WARP, arguments, plan.shared)
