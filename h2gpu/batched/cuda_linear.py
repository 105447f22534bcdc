"""What follows from LU on the GPU, and Cholesky: the twin of h2gpu.batched.cpu_linear.

Cholesky factors up to 32 × 32 by kernels/systems/cholesky_register.cuh, others that fit by cholesky_shared.cuh, larger
ones panel by panel in place (cholesky_panel.cuh, lu_update.cuh); solutions by solve_triangles.cuh, of one right-hand
side and at most 32 unknowns by solve_small.cuh, determinants by lu_determinant.cuh.
"""

import cupy
import numpy as np

from h2gpu.batched import tuning
from h2gpu.batched.classes import classes
from h2gpu.batched.cuda_lu import (
    LEAST_LANES,
    ROW_BUFFER,
    TOGETHER,
    lu_factor,
    shared_bytes,
    shared_limit,
    update_rest,
)
from h2gpu.batched.launch import NULL, WARP, addresses, launch
from h2gpu.batched.modules import kernel
from h2gpu.batched.ragged import MatrixBatch

CHOLESKY_LANES, CHOLESKY_WARPS = 8, 1  # that share a matrix where there are many; of a block
CHOLESKY_MANY = 2000
CHOLESKY_SLOTS = {8: 5, 4: 8}  # bytes of a number: most rows of a matrix in shared memory, in warps of them
CHOLESKY_PANEL, PANEL_WARPS = 32, 8
SHARED_PANEL = {8: 8, 4: 16}  # bytes of a number: columns of a panel in shared memory
VENDOR_EDGE, VENDOR_FEW = 512, 16  # beyond, and as few: the vendor's, which spreads one matrix over the device
SOLVE_WARPS, SOLVE_COLUMNS = 8, 8  # of a block, at most; columns of B that it takes where there are several
SMALL_WARPS = 4  # of a block of solve_small, each with a matrix
DETERMINANT_WARPS = 4


def cholesky(A):
    """See h2gpu.batched.cholesky: L, info."""
    info = cupy.zeros(len(A), np.int32)
    if not isinstance(A, MatrixBatch):
        L, n = cupy.empty_like(A), A.shape[-1]
        if A.size and _fits(A.dtype, n):
            _run_whole(A.dtype, (A, L, info, NULL), len(A), n)
        elif A.size and not (n > VENDOR_EDGE and len(A) < VENDOR_FEW and _vendor(A, L)):
            L[...] = A
            _run_panels(A.dtype, L, info, NULL, len(A), n)
        return L, info
    A = A.on_host()
    L, every = MatrixBatch.empty(A.rows, A.columns, A.dtype, cupy), np.arange(len(A))
    if not _fits(A.dtype, A.rows).all():
        L.buffer[...] = A.entries
    for group in classes(A.rows, A.columns, lambda _, n: _keys(A.dtype, n)):
        table = group.table(A.offsets, L.offsets, 0, A.rows, A.columns, every)
        if group.keys[0]:
            _run_whole(A.dtype, (A.buffer, L.buffer, info, table), group.count, group.shape[1])
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
    return bool(cupy.isfinite(L).all())


def _fits(dtype, n):
    """Whether a block can hold n × n matrices in shared memory, and a lane its rows of a panel."""
    most, limit = CHOLESKY_SLOTS[dtype.itemsize] * WARP, shared_limit(cupy.cuda.Device().id)
    return (n <= most) & (shared_bytes(dtype, n, n)[0] <= limit)


def _keys(dtype, n):
    """What matrices n × n have to agree in to be launched together: 0 by panels, else how they are held, and size."""
    sizes = np.where(n <= WARP, n + n % 2, WARP + -(-n // WARP))
    return np.where(_fits(dtype, n), sizes, 0)[None]


def _run_whole(dtype, buffers, batch, n):
    """One launch: matrices in registers or in shared memory."""
    if n <= WARP:
        return _run_register(dtype, buffers, batch, n)
    shared, pitch = shared_bytes(dtype, n, n)
    slots = -(-n // WARP)
    row = tuning.row("cholesky_shared", dtype, rows=n)
    warps, resident = row["warps"], row["resident"]
    instance = dtype, SHARED_PANEL[dtype.itemsize], slots, warps, resident
    function = kernel("systems/cholesky_shared.cuh", "cholesky_shared", *instance, shared_bytes=shared)
    launch(function, batch, warps * WARP, (*buffers, n, pitch), shared)


def _run_register(dtype, buffers, batch, n):
    if batch >= CHOLESKY_MANY:
        lanes, slots = CHOLESKY_LANES, -(-n // CHOLESKY_LANES)
    else:
        lanes, slots = max(LEAST_LANES, 1 << (n - 1).bit_length()), 1
    columns = n + n % 2
    shared = CHOLESKY_WARPS * (WARP // lanes) * _stage_entries(columns, lanes, slots) * dtype.itemsize
    instance = dtype, columns, lanes, slots, CHOLESKY_WARPS
    function = kernel("systems/cholesky_register.cuh", "cholesky_register", *instance, shared_bytes=shared)
    blocks = -(-batch // (CHOLESKY_WARPS * WARP // lanes))
    launch(function, blocks, CHOLESKY_WARPS * WARP, (*buffers, n, np.int64(batch)), shared)


def _stage_entries(columns, lanes, slots):
    """Of kernels/systems/warp/small_stage.cuh for the lower triangle of a matrix."""
    raw = lanes * sum(min((s + 1) * lanes, columns) | 1 for s in range(slots))
    return raw if lanes == WARP else (raw + WARP // 4 - 1) // (WARP // 2) * (WARP // 2) + WARP // 4


def _run_panels(dtype, L, info, table, batch, n):
    shared = PANEL_WARPS * ROW_BUFFER * dtype.itemsize
    instance, together = (dtype, CHOLESKY_PANEL, PANEL_WARPS), TOGETHER[dtype.itemsize]
    function = kernel("systems/cholesky_panel.cuh", "cholesky_panel", *instance, shared_bytes=shared)
    for first in range(0, n, CHOLESKY_PANEL):
        launch(function, batch, PANEL_WARPS * WARP, (L, info, table, n, first), shared)
        start, end = first // together * together, first + CHOLESKY_PANEL
        inner = (CHOLESKY_PANEL, first, start + together) if end < min(start + together, n) else (together, start, n)
        update_rest(dtype, L, info, (table, n, n), batch, *inner, True)


def lu_solve(LU, piv, b):
    """See h2gpu.batched.lu_solve."""
    return _solve(LU, piv, b, False)


def cholesky_solve(L, b):
    """See h2gpu.batched.cholesky_solve."""
    return _solve(L, None, b, True)


def _solve(F, piv, b, symmetric):
    if isinstance(F, MatrixBatch):
        F, x = F.on_host(), MatrixBatch.empty(b.rows, b.columns, b.dtype, cupy)
        for group in classes(F.rows, b.columns, _solve_keys):
            pivots = 0 if piv is None else piv.offsets
            table = group.table(F.offsets, x.offsets, pivots, b.columns, F.rows, np.arange(len(F)))
            buffers = *addresses(F, piv, b, x), table
            _run_solve(F.dtype, buffers, group.count, *group.shape, symmetric)
        return x
    x = cupy.empty_like(b)
    if b.size:
        buffers = *addresses(F, piv, b, x), NULL
        _run_solve(F.dtype, buffers, len(F), *b.shape[1:], symmetric)
    return x


def _solve_keys(n, columns):
    """What systems launched together have to agree in: one right-hand side or several, and the size of small ones."""
    single = columns == 1
    return np.stack([single, np.where(single & (n <= WARP), n + n % 2, 0)])


def _run_solve(dtype, buffers, batch, n, columns, symmetric):
    if columns == 1 and n <= WARP:
        size = n + n % 2
        shared = SMALL_WARPS * size * (size | 1) * dtype.itemsize
        instance = dtype, size, SMALL_WARPS, symmetric
        function = kernel("systems/solve_small.cuh", "solve_small", *instance, shared_bytes=shared)
        return launch(function, -(-batch // SMALL_WARPS), SMALL_WARPS * WARP, (*buffers, n, np.int64(batch)), shared)
    each, limit = (1 if columns == 1 else SOLVE_COLUMNS), shared_limit(cupy.cuda.Device().id)
    if _solve_bytes(dtype, n, each) > limit:
        each = 1
    shared, pieces = _solve_bytes(dtype, n, each), -(-columns // each)
    if shared > limit:
        raise ValueError(f"expected matrices whose solutions fit in {limit} bytes of shared memory, got n = {n}")
    instance = dtype, each, SOLVE_WARPS, symmetric
    function = kernel("systems/solve_triangles.cuh", "solve_triangles", *instance, shared_bytes=shared)
    warps = min(SOLVE_WARPS, max(-(-n // WARP), each))
    launch(function, batch * pieces, warps * WARP, (*buffers, n, columns, pieces), shared)


def _solve_bytes(dtype, n, columns):
    return (n * columns + WARP * (WARP + 1)) * dtype.itemsize + 4 * n


def slogdet(A):
    """See h2gpu.batched.slogdet."""
    LU, piv, _ = lu_factor(A, "auto")
    sign, logarithm = cupy.empty(len(A), A.dtype), cupy.empty(len(A), np.dtype(A.dtype.char.lower()))
    if isinstance(A, MatrixBatch):
        every = np.arange(len(A))
        row = np.stack([LU.offsets, LU.offsets, piv.offsets, LU.rows, LU.columns, every], axis=1).astype(np.int64)
        buffers, n = (LU.buffer, piv.buffer, sign, logarithm, cupy.asarray(row)), 0
    else:
        buffers, n = (LU, piv, sign, logarithm, NULL), A.shape[-1]
    function = kernel("systems/lu_determinant.cuh", "lu_determinant", A.dtype, DETERMINANT_WARPS)
    blocks = -(-len(A) // DETERMINANT_WARPS)
    launch(function, blocks, DETERMINANT_WARPS * WARP, (*buffers, n, np.int64(len(A))))
    return sign, logarithm
