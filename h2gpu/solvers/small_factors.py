"""Inverse Cholesky factors of many small covariance matrices.

    K = L Lᵀ,     rows of L⁻¹:  w = L⁻ᵀ e_last satisfies  wᵀ K w = 1  and  w_last = 1/√(variance given the others)

A matrix that is singular to rounding (sites at one place, very smooth fields) gets the smallest multiple of its
diagonal, of 10⁻¹², 10⁻¹¹, …, with which it can be factorized: a row of a preconditioner for nearly the same field.
"""

import numpy as np

from h2gpu.batched.arrays import array_module

SINGULAR = 1e-13  # of the variance: what a Cholesky factorization in float64 cannot tell from zero
LEAST, GROWTH, MOST = 1e-12, 10.0, 1.0  # multiples of the diagonal that are added where needed
BAND = 16  # rows whose covariances are evaluated together
CHUNK = {"numpy": 1 << 19, "cupy": 1 << 26}  # entries of the matrices that are worked on at a time


def together(xp, m):
    """How many m × m matrices to work on at a time: on the CPU as many as stay in a thread's cache."""
    return max(1, CHUNK[xp.__name__] // m**2)


def cholesky(K):
    """L of every matrix of (batch, m, m), whose lower triangles are read, and which were regularized: L, mask."""
    L = _attempt(K)
    bad = _singular(K, L)
    if array_module(K) is np and bad.any() and len(K) > 1:  # NumPy gives up the whole stack for one matrix
        half = len(K) // 2
        (L1, bad1), (L2, bad2) = cholesky(K[:half]), cholesky(K[half:])
        return np.concatenate([L1, L2]), np.concatenate([bad1, bad2])
    if bad.any():
        L[bad] = _regularized(K[bad])
    return L, bad


def covariances(values, x, nugget):
    """Lower triangles of the covariance matrices of (batch, m, dim) points, nugget added: (batch, m, m).

    Entries above the diagonal are filled only within bands: half of the evaluations are saved.
    """
    xp, (batch, m, _) = array_module(x), x.shape
    K = xp.zeros((batch, m, m), x.dtype)
    for i in range(0, m, BAND):
        rows = slice(i, i + BAND)
        K[:, rows, : i + BAND] = values(x[:, rows, None], x[:, None, : i + BAND])
    if nugget:
        K.reshape(batch, -1)[:, :: m + 1] += nugget
    return K


def last_rows(L):
    """w = L⁻ᵀ e_last of every factor (batch, m, m): (batch, m)."""
    xp, m = array_module(L), L.shape[-1]
    w = xp.zeros(L.shape[:2], L.dtype)
    w[:, -1] = 1
    for j in reversed(range(m)):
        w[:, j] /= L[:, j, j]
        w[:, :j] -= L[:, j, :j] * w[:, j : j + 1]
    return w


def _attempt(K):
    """Cholesky factors; those of matrices that are not positive definite hold NaN, on the CPU all of their stack."""
    xp = array_module(K)
    try:
        return xp.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        return xp.full_like(K, np.nan)


def _singular(K, L):
    """Which factors have a pivot that is lost in rounding: mask (batch,)."""
    xp = array_module(K)
    pivots = xp.einsum("bii->bi", L) ** 2
    return ~(pivots > SINGULAR * xp.einsum("bii->bi", K)).all(axis=1)


def _regularized(K):
    """Factors of K + τ diag K for the least τ that makes each matrix positive definite."""
    xp = array_module(K)
    L, left, tau = xp.full_like(K, np.nan), np.arange(len(K)), LEAST
    while len(left) and tau <= MOST:
        shifted = K[left]
        shifted.reshape(len(left), -1)[:, :: K.shape[-1] + 1] *= 1 + tau
        L[left] = _attempt(shifted)
        good = xp.einsum("bii->bi", L[left]) ** 2 > tau / 2 * xp.einsum("bii->bi", shifted)
        bad = ~good.all(axis=1)
        left, tau = left[bad if xp is np else bad.get()], GROWTH * tau
    if len(left):
        raise np.linalg.LinAlgError(
            "a covariance matrix of neighbouring sites is not positive definite; check that the covariance "
            "function is valid in this number of dimensions and on this surface"
        )
    return L
