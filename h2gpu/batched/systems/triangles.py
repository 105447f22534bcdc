"""Solutions from LU and Cholesky factors on the GPU.

kernels/systems/solve_triangles.cuh; one right-hand side and at most 32 unknowns: solve_small.cuh; many right-hand
sides: interchanges alone, then trsm.py twice.
"""

import cupy
import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.size_classes import classes
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.direct import Direct
from h2gpu.batched.device.launch import NULL, WARP, Ready, addresses
from h2gpu.batched.device.limits import FEW_RESERVED_BYTES, shared_limit
from h2gpu.batched.device.plans import remembered
from h2gpu.batched.systems.trsm import plan as triangle
from h2gpu.batched.systems.trsm import trsm

SOLVE_WARPS, SOLVE_COLUMNS = 8, 8  # of a block, at most; columns of B that it takes where there are several
TILED = 4096  # unknowns up to which trsm has a kernel
NEAR, MUCH = 128, 1 << 16  # it is faster up to so many unknowns, from so many of a batch times eighths of its sides;
FAR = 24  # beyond from so many right-hand sides
PERMUTE_THREADS, PERMUTED_ENTRIES = 256, 4096  # of permuted_rows: threads of a block, entries that it takes
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
            _ready(F.dtype, group.count, *group.shape, symmetric)(*buffers)
        return x
    if b.size and tiled(F) and many(len(b), *b.shape[1:]):
        return _by_trsm(F, b if symmetric else permuted_rows(piv, b, b.shape, b.dtype), symmetric)
    x = cupy.empty(b.shape, b.dtype)
    if b.size:
        buffers = *addresses(F, piv, b, x), NULL
        plan(F.dtype, len(F), *b.shape[1:], symmetric)(*buffers)
    return x


def inverse_of(LU, piv):
    """U⁻¹ L⁻¹ P of a contiguous stack."""
    if not LU.size:
        return cupy.empty(LU.shape, LU.dtype)
    if not tiled(LU):
        return lu_solve(LU, piv, permuted_rows(None, None, LU.shape, LU.dtype))
    steps = _inverse_steps(LU.dtype, *LU.shape[:2])
    if steps is None:
        return _by_trsm(LU, permuted_rows(piv, None, LU.shape, LU.dtype), False)
    permuted, lower, upper = steps
    return upper(LU, lower(LU, permuted(piv)))


@remembered
def _inverse_steps(dtype, batch, n):
    """P as a matrix from pivots, L⁻¹ X and U⁻¹ X as launches laid out once; None where cuBLAS solves with triangles."""
    shape, one = (batch, n, n), (dtype.type(1),)
    lower, upper = (triangle(dtype, batch, n, n, False, of_lower, False, of_lower, False) for of_lower in (True, False))
    if lower is None or upper is None:
        return None
    permuted = Direct(_permutation(dtype, *shape), shape, dtype, (None, NULL))
    return permuted, *(Direct(ready, shape, dtype, (None, None), (NULL,), one) for ready in (lower, upper))


def many(batch, n, columns):
    """Whether trsm is faster, whose several launches count where little is to be done."""
    if n > NEAR:
        return columns >= FAR
    return columns > 1 and batch * n * -(-columns // SOLVE_COLUMNS) >= MUCH


def tiled(F):
    """Whether trsm has a kernel for these factors."""
    return F.dtype.kind == "f" and F.shape[-1] <= TILED


def _by_trsm(F, X, symmetric):
    """F⁻¹ X for many right-hand sides."""
    X = trsm(F, X, 1, "left", True, False, not symmetric)
    return trsm(F, X, 1, "left", symmetric, symmetric, False)


def permuted_rows(piv, b, shape, dtype):
    """P b of a stack of this shape for pivots (batch, n); the identity in place of b or of P that is None."""
    X = cupy.empty(shape, dtype)
    _permutation(X.dtype, *shape)(*addresses(piv, b, X))
    return X


@remembered
def _permutation(dtype, batch, n, columns):
    """The launch of permuted_rows."""
    pieces, shared = max(1, min(-(-n * columns // PERMUTED_ENTRIES), np.iinfo(np.int32).max // max(1, batch))), 4 * n
    function = kernel("systems/solve_triangles.cuh", "permuted_rows", dtype, PERMUTE_THREADS, shared_bytes=shared)
    return Ready(function, batch * pieces, PERMUTE_THREADS, shared, (n, columns, pieces))


def _solve_keys(n, columns):
    """What systems launched together have to agree in: one right-hand side or several, and the size of small ones."""
    single = columns == 1
    return np.stack([single, np.where(single & (n <= WARP), n + n % 2, 0)])


def _ready(dtype, batch, n, columns, symmetric):
    """The launch for a batch of systems of n unknowns, or of none larger."""
    if columns == 1 and n <= WARP:
        size = n + n % 2
        shared = small_bytes(dtype, size)
        instance = dtype, size, SMALL_WARPS, symmetric
        function = kernel("systems/solve_small.cuh", "solve_small", *instance, shared_bytes=shared)
        return Ready(function, -(-batch // SMALL_WARPS), SMALL_WARPS * WARP, shared, (n, np.int64(batch)))
    each, limit = (1 if columns == 1 else SOLVE_COLUMNS), shared_limit(cupy.cuda.Device().id, FEW_RESERVED_BYTES)
    if _solve_bytes(dtype, n, each) > limit:
        each = 1
    shared, pieces = _solve_bytes(dtype, n, each), -(-columns // each)
    if shared > limit:
        raise ValueError(f"expected matrices whose solutions fit in {limit} bytes of shared memory, got n = {n}")
    instance = dtype, each, SOLVE_WARPS, symmetric
    function = kernel("systems/solve_triangles.cuh", "solve_triangles", *instance, shared_bytes=shared)
    warps = min(SOLVE_WARPS, max(-(-n // WARP), each))
    return Ready(function, batch * pieces, warps * WARP, shared, (n, columns, pieces))


plan = remembered(_ready)


def small_bytes(dtype, n):
    """Shared memory of a block of solve_small: a factor a warp."""
    return SMALL_WARPS * n * (n | 1) * dtype.itemsize


def _solve_bytes(dtype, n, columns):
    return (n * columns + WARP * (WARP + 1)) * dtype.itemsize + 4 * n
