"""Inverse Cholesky factors of many small covariance matrices.

    K = L Lᵀ,     rows of L⁻¹:  w = L⁻ᵀ e_last satisfies  wᵀ K w = 1  and  w_last = 1/√(variance given the others)

A matrix that is singular to rounding (sites at one place, very smooth fields) gets the smallest multiple of its
diagonal, of 10⁻¹², 10⁻¹¹, …, with which it can be factorized: a row of a preconditioner for nearly the same field.
"""

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module, to_host
from h2gpu.batched import MatrixBatch
from h2gpu.batched.copies import add_to_diagonals
from h2gpu.batched.core.dispatch import twins_of
from h2gpu.covariance.pairs import pairwise

twin = twins_of("h2gpu.solvers", cpu="small_factors")

SINGULAR = 1e-13  # of the variance: what a Cholesky factorization in float64 cannot tell from zero
LEAST, GROWTH, MOST = 1e-12, 10.0, 1.0  # multiples of the diagonal that are added where needed
BAND = 16  # rows whose covariances are evaluated together
CHUNK = {"numpy": 1 << 19, "cupy": 1 << 26}  # entries of the matrices that are worked on at a time


def together(xp, m):
    """How many m × m matrices to work on at a time: on the CPU as many as stay in a thread's cache."""
    return max(1, CHUNK[xp.__name__] // m**2)


def cholesky(K):
    """L of every matrix of (batch, m, m), whose lower triangles are read, and which were regularized: L, mask.

    Raises LinAlgError for a matrix that is far from positive definite.
    """
    L, _ = batched.cholesky(K, return_info=True)
    bad = twin(K).find_singular(K, L, SINGULAR)
    for i in np.flatnonzero(to_host(bad)):
        L[i] = _regularized(K[i : i + 1])[0]
    return L, bad


def covariances(values, x, nugget):
    """Lower triangles of the covariance matrices of (batch, m, dim) points, nugget added: (batch, m, m).

    values   by broadcasting, or a covariance's `pair_function`, which a GPU evaluates by the kernel of the matrix
    nugget   one number, or one a point (m,) or (batch, m)

    Entries above the diagonal are filled only within bands, but by that kernel: half of the evaluations are saved.
    """
    xp, (batch, m, _) = array_module(x), x.shape
    K = xp.zeros((batch, m, m), x.dtype)
    if xp is not np and hasattr(values, "on_device"):
        X = MatrixBatch.from_stack(x)
        pairwise(values, X, X, MatrixBatch.from_stack(K))
    else:
        for i in range(0, m, BAND):
            rows = slice(i, i + BAND)
            K[:, rows, : i + BAND] = values(x[:, rows, None], x[:, None, : i + BAND])
    add_to_diagonals(K, nugget)
    return K


def last_rows(L):
    """w = L⁻ᵀ e_last of every factor (batch, m, m): (batch, m)."""
    return twin(L).rows_of_factors(L)


def leading_rows(L):
    """The lower triangle of L⁻¹, row by row, of one factor (1, m, m): that of its leading parts' last rows."""
    return twin(L).rows_of_factors(L, growing=True)


def rows_of_factors(L, growing=False):
    """Both on the CPU."""
    if growing:
        return np.linalg.inv(L[0])[np.tri(L.shape[1], dtype=bool)]
    m = L.shape[1]
    w = np.zeros(L.shape[:2], L.dtype)
    w[:, -1] = 1
    for j in reversed(range(m)):
        w[:, j] /= L[:, j, j]
        w[:, :j] -= L[:, j, :j] * w[:, j : j + 1]
    return w


def find_singular(K, L, least):
    """On the CPU: which matrices have no factor (L is NaN), or a pivot below `least` of their diagonal, (batch,)."""
    return ~(np.einsum("bii->bi", L) ** 2 > least * np.einsum("bii->bi", K)).all(axis=1)


def _regularized(K):
    """The factor of K + τ diag K for the least τ that makes the one matrix of the stack positive definite."""
    tau = LEAST
    while tau <= MOST:
        shifted = K.copy()
        shifted.reshape(1, -1)[:, :: K.shape[-1] + 1] *= 1 + tau
        L, _ = batched.cholesky(shifted, return_info=True)
        if not bool(twin(K).find_singular(shifted, L, tau / 2)[0]):
            return L
        tau *= GROWTH
    raise np.linalg.LinAlgError(
        "the covariance matrix of some neighbouring sites is not positive definite; check that the covariance function "
        "is valid in this number of dimensions and on this surface"
    )
