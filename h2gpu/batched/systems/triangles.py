"""Solutions from LU and Cholesky factors on the GPU.

kernels/systems/solve_triangles.cuh; one right-hand side and at most 32 unknowns: solve_small.cuh.
"""

import cupy
import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.size_classes import classes
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, addresses, launch
from h2gpu.batched.device.limits import FEW_RESERVED_BYTES, shared_limit

SOLVE_WARPS, SOLVE_COLUMNS = 8, 8  # of a block, at most; columns of B that it takes where there are several
SMALL_WARPS = 4  # of a block of solve_small, each with a matrix


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
        shared = small_bytes(dtype, size)
        instance = dtype, size, SMALL_WARPS, symmetric
        function = kernel("systems/solve_small.cuh", "solve_small", *instance, shared_bytes=shared)
        return launch(function, -(-batch // SMALL_WARPS), SMALL_WARPS * WARP, (*buffers, n, np.int64(batch)), shared)
    each, limit = (1 if columns == 1 else SOLVE_COLUMNS), shared_limit(cupy.cuda.Device().id, FEW_RESERVED_BYTES)
    if _solve_bytes(dtype, n, each) > limit:
        each = 1
    shared, pieces = _solve_bytes(dtype, n, each), -(-columns // each)
    if shared > limit:
        raise ValueError(f"expected matrices whose solutions fit in {limit} bytes of shared memory, got n = {n}")
    instance = dtype, each, SOLVE_WARPS, symmetric
    function = kernel("systems/solve_triangles.cuh", "solve_triangles", *instance, shared_bytes=shared)
    warps = min(SOLVE_WARPS, max(-(-n // WARP), each))
    launch(function, batch * pieces, warps * WARP, (*buffers, n, columns, pieces), shared)


def small_bytes(dtype, n):
    """Shared memory of a block of solve_small: a factor a warp."""
    return SMALL_WARPS * n * (n | 1) * dtype.itemsize


def _solve_bytes(dtype, n, columns):
    return (n * columns + WARP * (WARP + 1)) * dtype.itemsize + 4 * n
