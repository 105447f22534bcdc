"""Bidiagonal reduction on the GPU and singular values from it: the twin of cpu_bidiagonal.

    W = Q B Pᵀ,   B = X diag(s) Yᵀ,   W = (Q X) diag(s) (P Y)ᵀ,   W = A or Aᵀ, whichever is not wide

Kernels: bidiagonalize.cuh or bidiagonalize_large.cuh, then bidiagonal_values.cuh or bidiagonal_svd.cuh; reflectors.cuh
applies Q and P. Golub & Kahan (1965); Dong, Haidar, Tomov & Dongarra (2018).
"""

from dataclasses import dataclass

import cupy as cp
import numpy as np

from h2gpu.batched import bidiagonal_plans as plans
from h2gpu.batched.classes import classes
from h2gpu.batched.cuda_bidiagonal_stacks import (
    SCRATCH_BYTES,
    VALUE_THREADS,
    bidiagonalize_stack,
    factor_stack,
    find_values,
    reduce_class,
    shared_limit,
    threads_for,
    values_of_stack,
)
from h2gpu.batched.cuda_svd_blocks import transposed
from h2gpu.batched.cuda_truncated import Factors, reflect
from h2gpu.batched.launch import NULL, WARP, launch
from h2gpu.batched.modules import kernel
from h2gpu.batched.ragged import MatrixBatch
from h2gpu.batched.verdict import check

TURN_THREADS = (
    64,
    128,
    256,
    544,
)  # of a block: a warp makes the rotations, each of the others takes a column of X or Y
SWEEPS = 30  # for each value at most
TURN_ENTRIES = 10  # of shared memory for each column: d, e and the rotations of two sweeps


@dataclass(frozen=True)
class Reduced:
    """W_b = H_0 ⋯ B_b (G_0 ⋯)ᵀ.

    A, d, e   MatrixBatch; W_b = A_bᵀ where A_b is wide
    V, U      MatrixBatch of n × m and n × n: the reflectors of H and of G, row by row
    taus      their τ, two buffers laid out as d; None all four where B alone is wanted
    """

    A: MatrixBatch
    d: MatrixBatch
    e: MatrixBatch
    V: MatrixBatch | None
    U: MatrixBatch | None
    taus: tuple | None

    def left(self, members):
        """Q of these matrices, as a product of reflectors."""
        return self._factors(self.V, self.taus[0], members)

    def right(self, members):
        """P of these matrices."""
        return self._factors(self.U, self.taus[1], members)

    def _factors(self, V, tau, members):
        parts = V.offsets[members], self.d.offsets[members]
        return Factors(V.buffer, tau, *parts, None, None, self.d.rows[members], None)


def bidiagonalize(A, vectors):
    """See h2gpu.batched.bidiagonalize; d and e as columns."""
    if not isinstance(A, MatrixBatch):
        return bidiagonalize_stack(A, vectors)
    F = factor(A, vectors == "both")
    if vectors == "none":
        return F.d, F.e
    U, V = applied(F, None, None)
    return U, F.d, F.e, transposed(V)


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


def factor(A, keep):
    """The Reduced form of a MatrixBatch; keep: with its reflectors."""
    m, n = np.maximum(A.rows, A.columns), np.minimum(A.rows, A.columns)
    d, e = MatrixBatch.empty(n, 1, A.dtype, cp), MatrixBatch.empty(np.maximum(n - 1, 0), 1, A.dtype, cp)
    V = U = taus = None
    buffers = A.buffer, NULL, NULL, d.buffer, e.buffer, NULL, NULL
    if keep:
        V, U = MatrixBatch.empty(n, m, A.dtype, cp), MatrixBatch.empty(n, n, A.dtype, cp)
        taus = cp.empty(d.buffer.size, A.dtype), cp.empty(d.buffer.size, A.dtype)
        buffers = A.buffer, V.buffer, U.buffer, d.buffer, e.buffer, *taus
    offsets = A.offsets, V.offsets if keep else 0, U.offsets if keep else 0, d.offsets, e.offsets
    for these in classes(A.rows, A.columns, lambda m, n: plans.keys(A.dtype.itemsize, m, n, shared_limit())):
        reduce_class(
            A.dtype, these.keys, these.rows, these.columns, (*buffers, these.table(*offsets, A.rows, A.columns))
        )
    return Reduced(A, d, e, V, U, taus)


def applied(F, X, Y, both=True):
    """U (m × k) and V (n × k) for every A_b: Q X and P Y, or for wide A_b P Y and Q X; X, Y: identities where None."""
    tall = F.A.rows >= F.A.columns
    groups = [(tall, F.left, X, F.right, Y), (~tall, F.right, Y, F.left, X)]
    U = MatrixBatch.empty(F.A.rows, F.d.rows, F.A.dtype, cp)
    V = MatrixBatch.empty(F.A.columns, F.d.rows, F.A.dtype, cp) if both else None
    for members, first, M, second, N in groups:
        if not members.any():
            continue
        members = slice(None) if members.all() else np.flatnonzero(members)
        reflect(first(members), None if M is None else M[members], U[members])
        if both:
            reflect(second(members), None if N is None else N[members], V[members])
    return U, V


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
        shared, stride = widest * (TURN_ENTRIES * size + 4), 2 * widest * (widest | 1)
        in_shared = shared + stride * size <= shared_limit()
        shared += stride * size if in_shared else 0
        function = kernel("bidiagonal/bidiagonal_svd.cuh", "bidiagonal_svd", s.dtype, threads, shared_bytes=shared)
        most = these.count if in_shared else max(1, SCRATCH_BYTES // (stride * size))
        for first in range(0, these.count, most):
            rows = table[first : first + most]
            workspace = NULL if in_shared else cp.empty(len(rows) * stride, s.dtype)
            buffers = F.d.buffer, F.e.buffer, s.buffer, X.buffer, Y.buffer, info, info[-1:], rows
            launch(function, len(rows), threads, (*buffers, workspace, np.int64(stride), SWEEPS), shared)
    return X, Y


def _by_columns(F, threads, share):
    """Classes of columns by threads of a block: `share` a column, and a warp besides for the rotations."""
    edges = np.array(threads) - (WARP if share > 1 else 0)
    ones = np.ones_like(F.d.rows)
    return classes(F.d.rows, ones, lambda n, _: threads_for(edges, threads, share * n))
