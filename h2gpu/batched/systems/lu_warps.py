"""LU in registers, a warp a matrix whatever the batch: kernels/systems/lu_warp.cuh.

The way of method "shared" where the tuning table has panels of a warp's columns.
"""

import cupy
import numpy as np

from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import WARP, Ready
from h2gpu.batched.device.limits import most_shared
from h2gpu.batched.systems.lu_shared import ALIGNED, SPREAD, of_rows

ROW_BYTES = 512  # of a lane's rows in registers, where a warp has a matrix
WARP_SPILL_BYTES = 0  # the same, where a warp has a matrix


def suits(dtype, m, n):
    """Whether the table says so, and rows fit in registers."""
    slots, columns, bytes_ = _warp_shape(dtype, m, n)
    fits = (slots <= 2) & (columns <= slots * WARP) & (slots * columns * dtype.itemsize <= ROW_BYTES)
    fits &= of_rows(dtype, "warps", m) * bytes_ <= most_shared(cupy.cuda.Device().id)
    return fits & (of_rows(dtype, "panel", m) == WARP)


def _warp_shape(dtype, m, n):
    """Rows a lane and columns in registers of a warp with a matrix, and the kernel's LUStage in bytes."""
    slots, columns = -(-m // WARP), -(-n // ALIGNED) * ALIGNED
    rows, behind = slots * WARP, np.maximum(columns - WARP, 0)
    return slots, columns, (rows * (columns + SPREAD) + WARP * (columns + behind)) * dtype.itemsize + 4 * rows


def ready(dtype, batch, m, n):
    """The launch for a batch of m × n matrices, or of none larger."""
    warps = int(of_rows(dtype, "warps", m))
    slots, columns, bytes_ = _warp_shape(dtype, m, n)
    shared = warps * int(bytes_)
    function = kernel("systems/lu_warp.cuh", "lu_warp", dtype, columns, slots, warps, shared_bytes=shared)
    return Ready(function, -(-batch // warps), warps * WARP, shared, (m, n, np.int64(batch)))
