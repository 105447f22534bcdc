"""L_b L_bᵀ = A_b on the GPU.

Up to 32 × 32 by kernels/systems/cholesky_register.cuh, others that fit in shared memory by cholesky_shared.cuh, larger
ones panel by panel in place (cholesky_panel.cuh, lu_update.cuh).
"""

import cupy
import numpy as np

from h2gpu.batched.copies import all_finite
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.size_classes import classes
from h2gpu.batched.device import tuning
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, Ready, launch
from h2gpu.batched.device.limits import FEW_RESERVED_BYTES, shared_limit
from h2gpu.batched.device.plans import remembered
from h2gpu.batched.systems.lu_registers import LEAST_LANES
from h2gpu.batched.systems.lu_shared import pitch_of
from h2gpu.batched.systems.rank_update import TOGETHER, rows_bytes, update_rest

CHOLESKY_LANES, CHOLESKY_WARPS = 8, 1  # that share a matrix where there are many; of a block
CHOLESKY_MANY = 2000
CHOLESKY_SLOTS = {8: 5, 4: 8}  # bytes of a number: most rows of a matrix in shared memory, in warps of them
CHOLESKY_PANEL, PANEL_WARPS = 32, 8
SHARED_PANEL = {8: 8, 4: 16}  # bytes of a number: columns of a panel in shared memory
REASON = "a pivot that is not positive"
VENDOR_EDGE, VENDOR_FEW = 512, 16  # beyond, and as few: the vendor's, which spreads one matrix over the device


def cholesky(A):
    """See h2gpu.batched.cholesky: L, info."""
    if not isinstance(A, MatrixBatch):
        L, n = cupy.empty(A.shape, A.dtype), A.shape[-1]
        ready = plan(A.dtype, len(A), n) if A.size else None
        if ready:
            info = cupy.empty(len(A), np.int32)
            ready(A, L, info, NULL, NULL)
            return L, info
        info = cupy.zeros(len(A), np.int32)
        if A.size and not (n > VENDOR_EDGE and len(A) < VENDOR_FEW and _vendor(A, L)):
            L[...] = A
            _run_panels(A.dtype, L, info, NULL, len(A), n)
        return L, info
    info = cupy.zeros(len(A), np.int32)
    A = A.on_host()
    L, every = MatrixBatch.empty(A.rows, A.columns, A.dtype, cupy), np.arange(len(A))
    if not _fits(A.dtype, A.rows).all():
        L.buffer[...] = A.entries
    for group in classes(A.rows, A.columns, lambda _, n: _keys(A.dtype, n)):
        table = group.table(A.offsets, L.offsets, 0, A.rows, A.columns, every)
        if group.keys[0]:
            _whole(A.dtype, group.count, group.shape[1])(A.buffer, L.buffer, info, NULL, table)
        else:
            _run_panels(A.dtype, L.buffer, info, table, group.count, group.shape[1])
    return L, info


def _vendor(A, L):
    """cuSOLVER, matrix by matrix; whether all have a factor: else our kernels shall say what is wrong."""
    import cupyx

    try:
        with cupyx.errstate(linalg="raise"):
            for matrix, factor in zip(A, L):
                factor[...] = cupy.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return all_finite(L)


def _fits(dtype, n):
    """Whether a block can hold n × n matrices in shared memory, and a lane its rows of a panel."""
    most, limit = CHOLESKY_SLOTS[dtype.itemsize] * WARP, shared_limit(cupy.cuda.Device().id, FEW_RESERVED_BYTES)
    return (n <= most) & (shared_bytes(dtype, n) <= limit)


def _keys(dtype, n):
    """What matrices n × n have to agree in to be launched together: 0 by panels, else how they are held, and size."""
    sizes = np.where(n <= WARP, n + n % 2, WARP + -(-n // WARP))
    return np.where(_fits(dtype, n), sizes, 0)[None]


@remembered
def plan(dtype, batch, n):
    """The one launch for matrices of one shape; None where they do not fit."""
    return _whole(dtype, batch, n) if _fits(dtype, n) else None


def _whole(dtype, batch, n):
    """One launch: matrices in registers or in shared memory."""
    if n <= WARP:
        return _in_registers(dtype, batch, n)
    shared, pitch = shared_bytes(dtype, n), pitch_of(n)
    slots = -(-n // WARP)
    row = tuning.row("cholesky_shared", dtype, rows=n)
    warps, resident = row["warps"], row["resident"]
    instance = dtype, SHARED_PANEL[dtype.itemsize], slots, warps, resident
    function = kernel("systems/cholesky_shared.cuh", "cholesky_shared", *instance, shared_bytes=shared)
    return Ready(function, batch, warps * WARP, shared, (n, pitch))


def shared_bytes(dtype, n):
    """Shared memory of a block of cholesky_shared: an n × n matrix, and where its rows begin."""
    return n * pitch_of(n) * dtype.itemsize + 4 * n


def _in_registers(dtype, batch, n):
    if batch >= CHOLESKY_MANY:
        lanes, slots = CHOLESKY_LANES, -(-n // CHOLESKY_LANES)
    else:
        lanes, slots = max(LEAST_LANES, 1 << (n - 1).bit_length()), 1
    columns = n + n % 2
    shared = register_bytes(dtype, columns, lanes, slots)
    instance = dtype, columns, lanes, slots, CHOLESKY_WARPS
    function = kernel("systems/cholesky_register.cuh", "cholesky_register", *instance, shared_bytes=shared)
    blocks = -(-batch // (CHOLESKY_WARPS * WARP // lanes))
    return Ready(function, blocks, CHOLESKY_WARPS * WARP, shared, (n, np.int64(batch)))


def register_bytes(dtype, columns, lanes, slots):
    """Shared memory of a block of cholesky_register: a stage for each of its matrices."""
    return CHOLESKY_WARPS * (WARP // lanes) * _stage_entries(columns, lanes, slots) * dtype.itemsize


def _stage_entries(columns, lanes, slots):
    """Of kernels/systems/warp/small_stage.cuh for the lower triangle of a matrix."""
    raw = lanes * sum(min((s + 1) * lanes, columns) | 1 for s in range(slots))
    return raw if lanes == WARP else (raw + WARP // 4 - 1) // (WARP // 2) * (WARP // 2) + WARP // 4


def _run_panels(dtype, L, info, table, batch, n):
    shared = rows_bytes(dtype, PANEL_WARPS)
    instance, together = (dtype, CHOLESKY_PANEL, PANEL_WARPS), TOGETHER[dtype.itemsize]
    function = kernel("systems/cholesky_panel.cuh", "cholesky_panel", *instance, shared_bytes=shared)
    for first in range(0, n, CHOLESKY_PANEL):
        launch(function, batch, PANEL_WARPS * WARP, (L, info, table, n, first), shared)
        start, end = first // together * together, first + CHOLESKY_PANEL
        inner = (CHOLESKY_PANEL, first, start + together) if end < min(start + together, n) else (together, start, n)
        update_rest(dtype, L, info, (table, n, n), batch, *inner, True)
