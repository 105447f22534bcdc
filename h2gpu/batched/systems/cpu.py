"""The reference for LU and Cholesky: LAPACK, matrix by matrix, threaded over the batch.

    P A = L U (GETRF),   x = U⁻¹ L⁻¹ P b (GETRS)         A = L Lᵀ (POTRF),   x = L⁻ᵀ L⁻¹ b (POTRS)
    op(A) X = α B or X op(A) = α B, A triangular (TRSM)

Matrices that hold NaN or Inf are found first.
"""

import numpy as np
from scipy.linalg.blas import get_blas_funcs
from scipy.linalg.lapack import get_lapack_funcs

from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.status import NOT_FINITE
from h2gpu.batched.device.stacks import each, like, shapes, stacks
from h2gpu.batched.device.threads import parallel


def lu_factor(A, method):
    """LU, piv and info by LAPACK, whatever the method asked for: the methods are kernels of the GPU."""
    (m, n), info = shapes(A), np.zeros(len(A), np.int32)
    LU, piv = like(A, m, n), _pivots(A, np.minimum(m, n))
    (getrf,) = get_lapack_funcs(("getrf",), dtype=A.dtype)
    finite = _finite(A)

    def factor(b):
        if not finite[b]:
            LU[b][...], piv[b].reshape(-1)[...], info[b] = np.nan, np.arange(min(A[b].shape)), NOT_FINITE
        elif A[b].size:
            LU[b][...], pivots, info[b] = getrf(A[b])
            piv[b].reshape(-1)[...] = pivots

    _one_by_one(factor, A)
    return LU, piv, info


def lu_solve(LU, piv, b):
    (getrs,) = get_lapack_funcs(("getrs",), dtype=LU.dtype)

    def solve(i):
        if x[i].size:
            with_zeros = (LU[i].diagonal() == 0).any()
            x[i][...] = np.nan if with_zeros else getrs(LU[i], piv[i].reshape(-1), b[i])[0]

    x = like(b, *shapes(b))
    _one_by_one(solve, LU)
    return x


def solve(A, b):
    """Solutions and info."""
    return _by_stacks(np.linalg.solve, A, b) or _by_factors(A, b)


def inv(A):
    """Inverses and info."""
    return _by_stacks(np.linalg.inv, A) or _by_factors(A, np.broadcast_to(np.eye(A.shape[-1], dtype=A.dtype), A.shape))


def _by_stacks(work, A, *b):
    """NumPy solves whole stacks, and refuses a whole stack for one matrix: None then."""
    X = like(A, *shapes(b[0] if b else A))
    try:
        each(lambda *stacks: (work(*stacks),), [X], A, *b)
    except np.linalg.LinAlgError:
        return None
    return (X, np.zeros(len(A), np.int32)) if _finite(A).all() else None


def _by_factors(A, b):
    """Matrix by matrix, so that info tells which have none."""
    LU, piv, info = lu_factor(A, "auto")
    return lu_solve(LU, piv, b), info


def det(A):
    """From slogdet, beyond the range of numbers infinite."""
    sign, logarithm = slogdet(A)
    with np.errstate(over="ignore"):
        return sign * np.exp(logarithm)


def slogdet(A):
    """NumPy's, but NaN, both of them, where a matrix holds NaN or Inf."""
    finite, real = _finite(A), A.dtype.type(0).real.dtype
    if isinstance(A, MatrixBatch):
        results = parallel(lambda b: np.linalg.slogdet(A[b]) if finite[b] else (np.nan, np.nan), range(len(A)))
        sign, logarithm = zip(*results) if results else ((), ())
        return np.array(sign, A.dtype), np.array(logarithm, real)
    with np.errstate(invalid="ignore"):
        sign, logarithm = np.linalg.slogdet(A)
    return np.where(finite, sign, A.dtype.type(np.nan)), np.where(finite, logarithm, real.type(np.nan))


def cholesky(A):
    """L and info. NumPy factorizes whole stacks, and refuses a whole stack for one matrix: then one by one."""
    if not isinstance(A, MatrixBatch):
        try:
            L = _stack_of_factors(A)
        except np.linalg.LinAlgError:
            pass
        else:
            finite = np.isfinite(np.einsum("bii->bi", L)).all(axis=1)
            L[~finite] = np.tril(np.full(L.shape[1:], np.nan))
            return L, np.where(finite, 0, NOT_FINITE).astype(np.int32)
    L, info = like(A, *shapes(A)), np.zeros(len(A), np.int32)
    (potrf,) = get_lapack_funcs(("potrf",), dtype=A.dtype)

    def factor(b):
        if not A[b].size:
            return
        lower = np.tril(A[b])
        try:  # NumPy's too, so that a matrix has the same bits whatever its neighbours are
            L[b][...] = np.linalg.cholesky(lower) if np.isfinite(lower).all() else np.tril(np.full_like(lower, np.nan))
            info[b] = 0 if np.isfinite(lower).all() else NOT_FINITE
        except np.linalg.LinAlgError:
            L[b][...], info[b] = np.tril(np.full_like(lower, np.nan)), potrf(lower, lower=True)[1]

    _one_by_one(factor, A)
    return L, info


def _stack_of_factors(A):
    """NumPy's own array where that is one task: a second one of the size costs more than the work."""
    if len(stacks(A)) == 1:
        return np.linalg.cholesky(A)
    return each(lambda A: (np.linalg.cholesky(A),), [like(A, *shapes(A))], A)[0]


def cholesky_solve(L, b):
    (potrs,) = get_lapack_funcs(("potrs",), dtype=L.dtype)

    def solve(i):
        if x[i].size:
            x[i][...] = potrs(L[i], b[i], lower=True)[0]

    x = like(b, *shapes(b))
    _one_by_one(solve, L)
    return x


def trsm(A, B, alpha, side, lower, trans, unit):
    (trsm,) = get_blas_funcs(("trsm",), dtype=A.dtype)
    X = like(B, *shapes(B))

    def solve(b):
        if X[b].size:  # BLAS counts by columns: it sees Xᵀ and Bᵀ, so that sides, triangles and transposes change
            X[b][...] = trsm(alpha, A[b].T, B[b].T, side=side == "left", lower=not lower, trans_a=trans, diag=unit).T

    def run(piece):
        for b in range(piece.start, min(piece.stop, len(A))):
            solve(b)

    parallel(run, stacks(A))
    return X


def _finite(A):
    """Which matrices hold neither NaN nor Inf."""
    if not isinstance(A, MatrixBatch):
        return np.isfinite(A).all(axis=(1, 2))
    return np.array([np.isfinite(M).all() for M in A.matrices()], bool)


def _one_by_one(work, A):
    """work(b) for every matrix of A, a slice of them a task."""

    def run(piece):
        for b in range(piece.start, min(piece.stop, len(A))):
            work(b)

    parallel(run, stacks(A))


def _pivots(A, k):
    """Places for k pivots a matrix: columns for a ragged batch."""
    return MatrixBatch.empty(k, 1, np.int32) if isinstance(A, MatrixBatch) else np.empty((len(A), k), np.int32)
