"""Singular values and vectors of the bidiagonal form on the GPU: method "bidiagonal" of `svd`.

    W = Q B Pᵀ,   B = X diag(s) Yᵀ,   W = (Q X) diag(s) (P Y)ᵀ,   W = A or Aᵀ, whichever is not wide

Values alone by bisection, bidiagonal_values.cuh; with vectors by implicit QR, bidiagonal_svd.cuh.
Golub & Kahan (1965).
"""

import cupy as cp
import numpy as np

from h2gpu.batched.bidiagonal.cuda import applied, factor
from h2gpu.batched.bidiagonal.stacks import factor_stack
from h2gpu.batched.copies.cuda import transposed
from h2gpu.batched.copies.verdicts import check
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.size_classes import classes
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, Steps, launch, tables
from h2gpu.batched.device.limits import shared_limit

SCRATCH_BYTES = 1 << 28  # of rotated vectors in device memory at a time
VALUE_THREADS = (32, 64, 128, 256)  # of a block, a value each
HALVINGS = {4: 28, 8: 55}  # of the interval that holds a value
TURN_THREADS = (64, 128, 256, 544)  # of a block: a warp makes the rotations, others take a column of X or Y each
SWEEPS = 30  # for each value at most
TURN_ENTRIES = 10  # of shared memory for each column: d, e and the rotations of two sweeps


def svd(A, vectors, return_info):
    """See h2gpu.batched.svd, method "bidiagonal"; info is 0 where there are values."""
    info = cp.zeros(len(A) + 1, np.int32)
    if vectors == "none" and not isinstance(A, MatrixBatch):
        results = (values_of_stack(*factor_stack(A), info)[..., None],)
    else:
        F = factor(A if isinstance(A, MatrixBatch) else MatrixBatch.from_stack(A), vectors != "none")
        s = MatrixBatch.empty(F.d.rows, 1, A.dtype, cp)
        results = {"d": s}
        if vectors == "none":
            values(F, s, info)
        else:
            U, V = applied(F, *turned(F, s, info), vectors == "both")
            results = {"U": U, "d": s} | ({"Vt": transposed(V)} if vectors == "both" else {})
        results = _shaped(A, **results)
    if return_info:
        return *results, info[:-1]
    if int(info[-1]):  # no reduction where all went well
        check(info[:-1])
    return results if len(results) > 1 else results[0]


def _shaped(A, **results):
    """Results as those of A are: arrays for an array. Their names are those of the shapes below."""
    if isinstance(A, MatrixBatch):
        return tuple(results.values())
    m, n = A.shape[1:]
    k = min(m, n)
    shapes = {"U": (m, k), "d": (k, 1), "Vt": (k, n)}
    return tuple(M.buffer.reshape(len(A), *shapes[name]) for name, M in results.items())


def values(F, s, info):
    """Singular values into s, what became of each matrix into info and its last entry."""
    for these in _by_columns(F, VALUE_THREADS, 1):
        table = these.table(F.d.offsets, F.e.offsets, s.offsets, F.d.rows, np.arange(len(s)))
        find_values(these.keys[0], these.rows.max(), (F.d.buffer, F.e.buffer, s.buffer, info, info[-1:], table))


def turned(F, s, info):
    """X and Y, MatrixBatch of n × n; values into s, what became of each matrix into info and its last entry."""
    n, size = F.d.rows, s.dtype.itemsize
    X, Y = (MatrixBatch.empty(n, n, s.dtype, cp) for _ in range(2))
    for these in _by_columns(F, TURN_THREADS, 2):
        table = these.table(F.d.offsets, F.e.offsets, s.offsets, X.offsets, n, np.arange(len(s)))
        threads, widest = int(these.keys[0]), int(these.rows.max())
        shared, stride = turn_bytes(size, widest, True), 2 * widest * (widest | 1)
        in_shared = shared <= shared_limit(cp.cuda.runtime.getDevice())
        shared = shared if in_shared else turn_bytes(size, widest, False)
        function = kernel("bidiagonal/bidiagonal_svd.cuh", "bidiagonal_svd", s.dtype, threads, shared_bytes=shared)
        most = these.count if in_shared else max(1, SCRATCH_BYTES // (stride * size))
        for first in range(0, these.count, most):
            rows = table[first : first + most]
            workspace = NULL if in_shared else cp.empty(len(rows) * stride, s.dtype)
            buffers = F.d.buffer, F.e.buffer, s.buffer, X.buffer, Y.buffer, info, info[-1:], rows
            launch(function, len(rows), threads, (*buffers, workspace, np.int64(stride), SWEEPS), shared)
    return X, Y


def turn_bytes(size, n, in_shared):
    """Shared memory of a block of bidiagonal_svd for numbers of so many bytes; in_shared: with X and Y."""
    return n * (TURN_ENTRIES * size + 4) + (2 * n * (n | 1) * size if in_shared else 0)


def _by_columns(F, threads, share):
    """Classes of columns by threads of a block: `share` a column, and a warp besides for the rotations."""
    edges = np.array(threads) - (WARP if share > 1 else 0)
    ones = np.ones_like(F.d.rows)
    return classes(F.d.rows, ones, lambda n, _: threads_for(edges, threads, share * n))


def values_of_stack(d, e, info):
    """s (batch, k) of d (batch, k) and e (batch, k − 1); what became of each matrix into info and its last entry."""
    s, (batch, k) = cp.empty_like(d), d.shape
    if s.size:
        (table,) = tables(batch, (Steps(k), Steps(k - 1), Steps(k), k, Steps(1)))
        (threads,) = threads_for(np.array(VALUE_THREADS), VALUE_THREADS, k)
        find_values(threads, k, (d, e, s, info, info[-1:], table))
    return s


def find_values(threads, most, arguments):
    """Values of matrices of at most so many columns; arguments end with their table."""
    dtype, threads, shared = arguments[0].dtype, int(threads), 2 * 8 * int(most)
    function = kernel("bidiagonal/bidiagonal_values.cuh", "bidiagonal_values", dtype, threads, shared_bytes=shared)
    launch(function, len(arguments[-1]), threads, (*arguments, HALVINGS[dtype.itemsize]), shared)


def threads_for(edges, threads, wanted):
    return np.array(threads)[np.minimum(np.searchsorted(edges, wanted), len(threads) - 1)][None]
