"""Is a large batch right? LAPACK's criteria of some of its matrices, as fractions of what is allowed: below 1 passes.

The criteria are in criteria.py. The matrices that are looked at come to the host, the others stay where they are.
"""

import numpy as np

from h2gpu import batched
from h2gpu.apps.benchmarks.routines import criteria
from h2gpu.arrays import array_module, to_host

LOOKED_AT = 1 << 17  # entries of the matrices that are looked at, about


def some(batch, entries):
    """Indices of the matrices that are looked at, of matrices of so many entries: first, last and some between."""
    count = int(np.clip(LOOKED_AT // max(1, entries), 2, 8))
    return np.unique(np.linspace(0, batch - 1, count).astype(int)).tolist()


def worst_of(error, A, *others):
    """The largest error(A_b, …) of the matrices that are looked at; `others` have the batch's length."""
    return max(error(*(to_host(M[b]) for M in (A, *others))) for b in some(len(A), A[0].size))


def qr(A, Q, R):
    """(batch, m, n) arrays; Q None: R alone."""
    return worst_of(criteria.triangle_error, A, R) if Q is None else worst_of(criteria.qr_error, A, Q, R)


def svd(A, U, s, Vt=None):
    """(batch, m, n), (batch, m, k), (batch, k[, 1]) and, where it was computed, (batch, k, n)."""
    return worst_of(criteria.svd_error, A, U, s, *([] if Vt is None else [Vt]))


def bidiagonal(A, d, e):
    """A (batch, m, n), d and e of all; Q and Pt are of a reduction of the few matrices."""
    which = some(len(A), A[0].size)
    chosen = array_module(A).stack([A[b] for b in which])
    Q, _, _, Pt = batched.bidiagonalize(chosen)
    parts = ((chosen[i], Q[i], d[b], e[b], Pt[i]) for i, b in enumerate(which))
    return max(criteria.reduction_error(*map(to_host, part)) for part in parts)


def truncated(A, U, atol):
    """‖A − U UᵀA‖_F ≤ atol, (batch, m, n), (batch, m, k) and a number."""
    return worst_of(lambda A, U: criteria.truncated_error(A, U, atol), A, U)


def gemm(A, B, C):
    """C = A B."""
    return worst_of(criteria.product_error, A, B, C)


def syrk(A, C):
    """The lower triangle of C = A Aᵀ."""
    return worst_of(criteria.square_error, A, C)


def axpy(alpha, X, Y, Z):
    """Z = α X + Y, entry by entry to two roundings."""

    def error(X, Y, Z):
        exact, size = (alpha * sign(X.astype(float)) + sign(Y.astype(float)) for sign in (np.positive, np.abs))
        return float(np.max(abs(Z - exact) / (2 * np.finfo(Z.dtype).eps * size + np.finfo(Z.dtype).tiny)))

    return worst_of(error, X, Y, Z)


def lu(A, LU, piv):
    """(batch, m, n), as lu_factor returns the factors and interchanges."""
    return worst_of(criteria.lu_error, A, LU, piv)


def cholesky(A, L):
    """A = L Lᵀ."""
    return worst_of(criteria.cholesky_error, A, L)


def cholesky_solution(L, x, b):
    """L Lᵀ x = b, (batch, n) each."""

    def error(L, x, b):
        wide = L.astype(np.float64)
        return criteria.solution_error((wide @ wide.T).astype(L.dtype), x, b)

    return worst_of(error, L, x, b)
