"""The reference: batched dense linear algebra by NumPy and LAPACK, threaded over the batch.

Every function takes (batch, m, n) arrays or a MatrixBatch and returns the same kind. This file and the clustering are
the only places with Python loops over matrices; NumPy's linear algebra runs on stacks of matrices of one shape.
"""

import numpy as np

from h2gpu.batched.cpu_bidiagonal import bidiagonalize
from h2gpu.batched.cpu_blas import axpy, gemv, symv, syrk, trsm
from h2gpu.batched.cpu_blocksparse import block_multiply
from h2gpu.batched.cpu_linear import cholesky, cholesky_solve, lu_factor, lu_solve, slogdet
from h2gpu.batched.cpu_stacks import WORK_PER_TASK, each, like, shapes, stacks, transposed
from h2gpu.batched.cpu_svd import discarded, pivoted_qr, shared_ranks, svd, svd_of_transposed, truncated_svd
from h2gpu.batched.products import factor_stacks as triangles_of_products
from h2gpu.batched.ragged import MatrixBatch, offsets_of, ranges
from h2gpu.batched.threads import parallel, pieces

__all__ = [
    "axpy",
    "bidiagonalize",
    "block_multiply",
    "cholesky",
    "cholesky_basis",
    "cholesky_qr",
    "cholesky_solve",
    "discarded",
    "frobenius_norms",
    "gather",
    "gemm",
    "gemv",
    "join",
    "lu_factor",
    "lu_solve",
    "pairwise",
    "pivoted_qr",
    "qr",
    "rounding_errors",
    "sampled",
    "shared_ranks",
    "slogdet",
    "svd",
    "svd_of_transposed",
    "symv",
    "syrk",
    "triangles_of_products",
    "triple_product",
    "trsm",
    "truncated_svd",
]

PANEL_ENTRIES = 1 << 17  # pairs evaluated at a time: their few temporaries stay in a core's cache
SAFE_SQUARES, SAFE_SCALE = (2.0**-900, 2.0**1000), 2.0**600  # sums of squares to be trusted; what others are scaled by
TOGETHER = 8  # matrices of one LAPACK call, so that NumPy lets the other threads run


def gemm(A, B, C, alpha, beta, transa, transb, out, method="auto", triangular=False):
    """Whatever the method asked for: methods are kernels of the GPU. LAPACK's products read all of a triangle."""

    def product(A, B, *C):
        with np.errstate(invalid="ignore"):  # NaN tell of themselves
            P = transposed(A, transa) @ transposed(B, transb)
        if alpha != 1:
            P *= P.dtype.type(alpha)
        if C:
            P += P.dtype.type(beta) * C[0]
        return (P,)

    if out is None:
        rows, columns = shapes(A)[1 if transa else 0], shapes(B)[0 if transb else 1]
        out = like(A, rows, columns)
    return each(product, [out], A, B, *([] if C is None or beta == 0 else [C]))[0]


def sampled(A, Omega):
    """A_b Ω for an array, Ω of `gaussian`: in float32 its entries have 11 bits, which the GPU makes use of."""
    with np.errstate(invalid="ignore"):
        return A @ Omega


def triple_product(A, B, C, out):
    out = like(A, A.rows, C.rows) if out is None else out
    return each(lambda A, B, C: (A @ B @ C.swapaxes(-1, -2),), [out], A, B, C)[0]


def qr(A, mode, out=None):
    m, n = shapes(A)
    R = like(A, np.minimum(m, n), n) if out is None else out
    if mode == "r":
        return (
            triangles(A, R) if isinstance(A, MatrixBatch) else each(lambda A: (np.linalg.qr(A, mode="r"),), [R], A)[0]
        )
    Q = like(A, m, np.minimum(m, n))
    return tuple(each(np.linalg.qr, [Q, R], A))


def cholesky_qr(A, before=None):
    """By reflections, which never fail."""
    P, R = qr(A, "reduced")
    return P, R if before is None else R @ before, None


def cholesky_basis(A):
    """Q_b and upper triangular X_b of condition ≤ √3: Q_b X_b, orthonormal, has the range of A_b. X is None for I.

    On the GPU by Cholesky factors, as cholesky_qr and as little sure: where it does not succeed Q and X hold NaN.
    """
    return qr(A, "reduced")[0], None


def triangles(A, R):
    """R of each matrix of a ragged batch, TOGETHER at a time: rows of zeros, which change no R, make them one height.

    NumPy keeps the interpreter lock in calls for fewer than about 8 matrices: measured on two threads, 1300 × 100
    matrices one by one run no faster than on one thread, eight at a time 2.2 times faster.
    """
    order = np.lexsort((A.rows, A.columns))
    cuts = np.flatnonzero(np.diff(A.columns[order])) + 1
    groups = [part[i : i + TOGETHER] for part in np.split(order, cuts) for i in range(0, len(part), TOGETHER)]

    def run(group):
        stack = np.zeros((len(group), A.rows[group].max(initial=0), A.columns[group].max(initial=0)), A.dtype)
        for b, index in enumerate(group):
            stack[b, : A.rows[index]] = A[int(index)]
        for index, triangle in zip(group, np.linalg.qr(stack, mode="r")):
            R[int(index)][...] = triangle[: R.rows[index]]

    parallel(run, groups)
    return R


def frobenius_norms(A):
    return norms(A, lambda entries: entries.astype(np.float64, copy=False))


def rounding_errors(A):
    def rounded_off(entries):
        with np.errstate(over="ignore"):
            return (entries - entries.astype(np.float32)).astype(np.float64, copy=False)

    return norms(A, rounded_off)


def norms(A, change):
    """Roots of the sums of squares of what `change` makes of each matrix's entries, float64."""
    found = np.zeros(len(A))

    def run(piece):
        part = A[piece]
        with np.errstate(over="ignore"):
            if isinstance(A, MatrixBatch):
                found[piece] = [norm(x, np.dot(x, x)) for x in (change(M.ravel()) for M in part.matrices())]
            else:
                rows = change(part.reshape(len(part), -1))
                found[piece] = [norm(x, square) for x, square in zip(rows, np.einsum("ij,ij->i", rows, rows))]

    parallel(run, stacks(A))
    return found


def norm(x, square):
    """‖x‖ of float64 entries, whose squares sum to `square` unless that leaves the range."""
    if SAFE_SQUARES[0] < square < SAFE_SQUARES[1] or np.isnan(square):
        return np.sqrt(square)
    scale = SAFE_SCALE if square < 1 else 1 / SAFE_SCALE
    return np.sqrt(np.dot(x * scale, x * scale)) / scale


def gather(A, index, transpose, out):
    """out_b = the leading part of A_index[b], transposed where transpose[b]."""

    def run(piece):
        for b in range(piece.start, min(piece.stop, len(index))):
            m, n = out.rows[b], out.columns[b]
            out[b][...] = transposed(A[int(index[b])], transpose[b])[:m, :n]

    parallel(run, pieces(out.sizes, WORK_PER_TASK))
    return out


def join(batches, out):
    """The leading parts of all matrices of several batches."""
    first = 0
    for A in batches:
        gather(A, np.arange(len(A)), np.zeros(len(A), bool), out[first : first + len(A)])
        first += len(A)
    return out


def pairwise(function, X, Y, out):
    """out_b[i, j] = function(X_b[i], Y_b[j]): consecutive blocks of one column in one call."""
    if not len(out):
        return out
    dim = X.columns[0]
    points, starts = X.buffer.reshape(-1, dim), X.offsets // dim
    firsts = np.flatnonzero(np.diff(Y.offsets, prepend=-1) | np.diff(Y.rows, prepend=-1))
    firsts = np.append(firsts, len(out))

    def panel(first, stop):
        Z = Y[first]
        for piece in pieces(out.sizes[first:stop], PANEL_ENTRIES):
            blocks = slice(first + piece.start, first + piece.stop)
            x = points[ranges(starts[blocks], out.rows[blocks])]
            target = out[blocks].entries.reshape(len(x), len(Z))
            if hasattr(function, "into"):
                function.into(x[:, None, :], Z[None, :, :], target)
            else:
                target[...] = function(x[:, None, :], Z[None, :, :])

    def run(piece):
        for g in range(piece.start, piece.stop):
            panel(firsts[g], firsts[g + 1])

    parallel(run, pieces(np.diff(offsets_of(out.sizes)[firsts]), WORK_PER_TASK))
    return out
