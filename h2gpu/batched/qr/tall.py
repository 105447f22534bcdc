"""R_b of tall A_b = Q_b R_b on the GPU, Q never formed: kernels/qr/triangle_chain.cuh and blocked_chain.cuh.

Matrices are annihilated against a triangle, block of rows by block of rows: column by column, or in panels of columns
with the FP64 tensor cores. The table tuning/…/qr_tall.csv says which, and how many warps share a matrix.
"""

from functools import lru_cache

import cupy
import numpy as np

from h2gpu.batched.device import tuning
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import WARP, launch

CHAIN_EDGE, TALL = 128, 2  # at most so many columns, and so many times as many rows
TILE = 8  # rows and columns of a tile
DIAGONAL, PITCH, SKEW = 74, 10, 16  # of a diagonal tile, of a tile's line, between blocks: qr/warp/tile_panel.cuh


def is_tall(rows, columns):
    """Whether matrices have rows enough for the chain, each for itself: an array for arrays."""
    return rows >= TALL * columns


def run(A, R, table, batch, m, n):
    """Launch the kernel for tall matrices m × n, or where table isn't null for a ragged batch of at most m × n."""
    function, warps, size = _plan(cupy.cuda.Device().id, A.dtype, n, batch)
    shape = (0, 0) if isinstance(table, cupy.ndarray) else (m, n)
    launch(function, batch, warps * WARP, (A, R, table, np.int64(batch), *shape), size)


@lru_cache(maxsize=1024)
def _plan(device, dtype, n, batch):
    """Function, warps a matrix and shared memory for `batch` tall matrices of at most n columns."""
    row = tuning.row("qr_tall", dtype, columns=n, matrices=batch)
    warps, resident = row["warps"], row["resident"]
    if row["ways"]:
        size = blocked_entries(n, row["strips"], row["ways"], warps) * dtype.itemsize
        knobs = row["strips"], row["max_columns"] // TILE, row["ways"], warps, resident
        return kernel("qr/blocked_chain.cuh", "blocked_chain", *knobs, shared_bytes=size), warps, size
    rows, columns, lanes = (row[key] for key in ("register_rows", "register_columns", "lanes"))
    size = triangle_entries(n, columns, lanes, warps) * dtype.itemsize
    instance = dtype, rows, columns, lanes, warps, resident
    return kernel("qr/triangle_chain.cuh", "triangle_chain", *instance, shared_bytes=size), warps, size


def triangle_entries(n, columns, lanes, warps):
    """Shared memory of qr/triangle_chain.cuh in entries: sums of warps in exchange, then the packed triangle."""
    return (2 * warps * (lanes * columns + 2) if warps > 1 else 0) + n * (n + 1) // 2


def blocked_entries(n, strips, ways, warps):
    """Shared memory of qr/blocked_chain.cuh in entries: panels and T of each warp, then the triangle of tiles."""
    panels = -(-n // TILE)
    phase = max(-(-panels // ways), warps)
    scratch = ways * ((strips + 1) * TILE * PITCH + 2 * SKEW // ways)
    return warps * scratch + phase * ways * DIAGONAL + panels * (panels - 1) // 2 * TILE**2
