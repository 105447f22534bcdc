"""R_b of tall A_b = Q_b R_b on the GPU, Q never formed: kernels/batched/triangle_chain.cuh.

Matrices are annihilated against a triangle, block of rows by block of rows; the table tuning/…/qr_tall.csv says how
many rows and columns a thread holds and how many warps share a matrix.
"""

from functools import lru_cache

import cupy
import numpy as np

from h2gpu.batched import tuning
from h2gpu.batched.launch import WARP, launch
from h2gpu.batched.modules import kernel

CHAIN_EDGE, TALL = 128, 2  # at most so many columns, and so many times as many rows


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
    rows, columns, lanes, warps = (row[key] for key in ("register_rows", "register_columns", "lanes", "warps"))
    exchange = 2 * warps * (lanes * columns + 2) if warps > 1 else 0
    size = (exchange + n * (n + 1) // 2) * dtype.itemsize
    instance = dtype, rows, columns, lanes, warps, row["resident"]
    return kernel("batched/triangle_chain.cuh", "triangle_chain", *instance, shared_bytes=size), warps, size
