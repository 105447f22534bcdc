"""C −= L U or L Lᵀ behind panels of a factorization in place: kernels/systems/lu_update.cuh."""

from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import WARP, launch

TOGETHER = {4: 64, 8: 64, 16: 32}  # bytes of a number: columns of the panels behind which the rest is updated at once
ROW_BUFFER = 9 * WARP  # entries, of kernels/systems/warp/panel_rows.cuh
UPDATE_EDGE, UPDATE_THREADS = 64, 128  # of kernels/systems/lu_update.cuh
SUM_PAD, LEFT_PAD, RIGHT_PAD_BYTES = 8, 4, 32  # the same: behind a row of C, of L, of U


def update_rest(dtype, LU, info, place, batch, width, first, stop, symmetric):
    """C −= L U (symmetric: L Lᵀ) behind the `width` columns from `first` on, in columns before `stop`."""
    _, m, n = place
    begin = first + width
    down, across = (-(-(size - begin) // UPDATE_EDGE) for size in (m, min(stop, n)))
    if down <= 0 or across <= 0:
        return
    shared = update_bytes(dtype.itemsize, width, symmetric)
    function = kernel("systems/lu_update.cuh", "lu_update", dtype, width, symmetric, shared_bytes=shared)
    launch(function, batch * down * across, UPDATE_THREADS, (LU, info, *place, first, stop, down, across), shared)


def rows_bytes(dtype, warps):
    """Shared memory through which so many warps pass their rows: kernels/systems/warp/panel_rows.cuh."""
    return ROW_BUFFER * warps * dtype.itemsize


def update_bytes(size, width, symmetric):
    """Shared memory of kernels/systems/lu_update.cuh: tiles of C, L and U (or L)."""
    left = UPDATE_EDGE * (width + LEFT_PAD)
    right = left if symmetric else width * (UPDATE_EDGE + RIGHT_PAD_BYTES // size)
    return (UPDATE_EDGE * (UPDATE_EDGE + SUM_PAD) + left + right) * size
