"""The reference for h2gpu.batched.blas: NumPy's products on stacks, and SciPy's BLAS matrix by matrix (trsm)."""

import numpy as np
from scipy.linalg.blas import get_blas_funcs

from h2gpu.batched.cpu_stacks import each, like, shapes, stacks, transposed
from h2gpu.batched.ragged import MatrixBatch
from h2gpu.batched.threads import parallel


def gemv(A, x, y, alpha, beta, trans):
    """Columns x and y."""
    rows = shapes(A)[1 if trans else 0]
    return _scaled(lambda A, x: transposed(A, trans) @ x, like(A, rows, 1), (A, x), y, alpha, beta)


def symv(A, x, y, alpha, beta, lower):
    """Columns x and y."""
    return _scaled(lambda A, x: _whole(A, lower) @ x, like(A, shapes(A)[0], 1), (A, x), y, alpha, beta)


def syrk(A, C, alpha, beta, trans, lower):
    n, triangle = shapes(A)[1 if trans else 0], np.tril if lower else np.triu

    def product(A, *C):
        P = A.dtype.type(alpha) * (transposed(A, trans) @ transposed(A, not trans))
        if not C:
            return (triangle(P),)
        with np.errstate(invalid="ignore"):
            P = P if beta == 0 else P + A.dtype.type(beta) * C[0]
        return (np.where(triangle(np.ones(P.shape[-2:], bool)), P, C[0]),)

    return each(product, [like(A, n, n)], A, *([] if C is None else [C]))[0]


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


def axpy(X, Y, alpha):
    if not isinstance(X, MatrixBatch):
        return (alpha if np.ndim(alpha) == 0 else alpha[:, None, None]) * X + Y
    out = like(X, X.rows, X.columns)
    factors = np.broadcast_to(alpha, len(X))
    for b in range(len(X)):
        out[b][...] = factors[b] * X[b] + Y[b]
    return out


def _scaled(product, out, factors, y, alpha, beta):
    """alpha · product(factors) + beta · y into out; y is not read where beta is 0."""

    def work(A, x, *y):
        P = product(A, x)
        P = P if alpha == 1 else P.dtype.type(alpha) * P
        return (P + P.dtype.type(beta) * y[0],) if y else (P,)

    return each(work, [out], *factors, *([] if y is None or beta == 0 else [y]))[0]


def _whole(A, lower):
    """The symmetric matrices whose one triangle counts."""
    half = np.tril(A, -1) if lower else np.triu(A, 1)
    diagonal = np.einsum("...ii->...i", A)[..., None] * np.eye(A.shape[-1], dtype=bool)
    return half + half.swapaxes(-1, -2) + np.where(np.eye(A.shape[-1], dtype=bool), diagonal, 0).astype(A.dtype)
