"""Is a batched result right? LAPACK's residuals of some of its matrices as fractions of what is allowed: below 1.

    QR    |A − QR| / (max(m, n) |A| ε), |I − QᵀQ| / (m ε) < 30         R alone: |AᵀA − RᵀR| / (max(m, n) |A|² ε) < 30
    SVD   |A − U Uᵀ A|, |‖A row by row‖ − s| / (max(m, n) |A| ε), |I − UᵀU| / (m ε) < 50
          truncated: |A − U Uᵀ A| ≤ atol
    GEBRD |A − Q B Pt| / (max(m, n) |A| ε) < 50, |I − QᵀQ| / (m ε) < 30
    GEMM  |ΔC| < 3 ε √(K + 2) |A| |B|
    LU    |PA − LU| / (max(m, n) |A| ε), |A − LLᵀ| / (n |A| ε), |b − Ax| / (n |A| |x| ε) < 30       |L| ≤ 1

Everything is computed by NumPy in float64 from results that come to the host.
"""

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module, to_host

QR_LIMIT, SVD_LIMIT, GEMM_LIMIT, LU_LIMIT = 30, 50, 3, 30
LOOKED_AT = 1 << 17  # entries of the matrices that are looked at, about
TINY = np.finfo(np.float32).tiny


def some(batch, entries):
    """Indices of the matrices that are looked at, of matrices of so many entries: first, last and some between."""
    count = int(np.clip(LOOKED_AT // max(1, entries), 2, 8))
    return np.unique(np.linspace(0, batch - 1, count).astype(int))


def qr(A, Q, R):
    """(batch, m, n) arrays; Q None: R alone."""
    which = some(len(A), A[0].size)
    epsilon, (m, n) = np.finfo(A.dtype).eps, A.shape[1:]
    A, R = _host(A, which), _host(R, which)
    lower = np.abs(np.tril(R, -1)).max(initial=0) > 0
    if Q is None:
        error = _norm(_t(A) @ A - _t(R) @ R) / (max(m, n) * epsilon * np.maximum(_norm(A) ** 2, TINY))
    else:
        Q = _host(Q, which)
        error = _norm(A - Q @ R) / (max(m, n) * epsilon * np.maximum(_norm(A), TINY))
        error = np.maximum(error, _departure(Q, epsilon))
    return np.inf if lower else _worst(error) / QR_LIMIT


def svd(A, U, s, Vt=None):
    """(batch, m, n), (batch, m, k), (batch, k[, 1]); without Vt: B = UᵀA has orthogonal rows of norms s and A = U B."""
    which = some(len(A), A[0].size)
    epsilon, (m, n) = np.finfo(A.dtype).eps, A.shape[1:]
    A, U, s = _host(A, which), _host(U, which), _host(s, which)[..., None].reshape(len(which), -1)
    B = _t(U) @ A if Vt is None else s[..., None] * _host(Vt, which)
    error = _norm(A - U @ B) + np.abs(np.linalg.norm(B, axis=2) - s).max(axis=1, initial=0)
    error = error / (max(m, n) * epsilon * np.maximum(_norm(A), TINY))
    unsorted = (np.diff(s, axis=1) > 0).any() or (s < 0).any()
    return np.inf if unsorted else _worst(np.maximum(error, _departure(U, epsilon))) / SVD_LIMIT


def bidiagonal(A, d, e):
    """A (batch, m, n), m ≥ n, d (batch, n), e (batch, n − 1); Q and Pt are of a reduction of the few matrices."""
    which = some(len(A), A[0].size)
    chosen = array_module(A).stack([A[int(b)] for b in which])
    Q, _, _, Pt = batched.bidiagonalize(chosen)
    epsilon, (m, n) = np.finfo(A.dtype).eps, A.shape[1:]
    few = np.arange(len(which))
    A, Q, Pt = _host(chosen, few), _host(Q, few), _host(Pt, few)
    d, e = _host(d, which), _host(e, which)
    B = d[..., None] * np.eye(n) + np.pad(e, [(0, 0), (0, 1)])[..., None] * np.eye(n, k=1)
    error = _norm(A - Q @ B @ Pt) / (max(m, n) * epsilon * np.maximum(_norm(A), TINY))
    departure = np.maximum(_departure(Q, epsilon), _departure(_t(Pt), epsilon))
    return max(_worst(error) / SVD_LIMIT, _worst(departure) / QR_LIMIT)


def truncated(A, U, atol):
    """|A − U Uᵀ A| ≤ atol, and columns of U orthonormal or zero."""
    which = some(len(A), A[0].size)
    epsilon = np.finfo(A.dtype).eps
    A, U = _host(A, which), _host(U, which)
    ones = np.abs(np.einsum("bij,bij->bj", U, U)) > 0.5
    departure = _norm(_t(U) @ U - ones[:, :, None] * np.eye(U.shape[2])) / (U.shape[1] * epsilon)
    error = _norm(A - U @ (_t(U) @ A)) / (atol + epsilon * _norm(A))
    return max(_worst(error), _worst(departure) / SVD_LIMIT)


def gemm(A, B, C):
    """C = A B."""
    which = some(len(A), A[0].size)
    allowed = np.finfo(A.dtype).eps * np.sqrt(A.shape[2] + 2)
    A, B, C = _host(A, which), _host(B, which), _host(C, which)
    return _worst(np.abs(C - A @ B) / np.maximum(allowed * (np.abs(A) @ np.abs(B)), TINY)) / GEMM_LIMIT


def syrk(A, C):
    """The lower triangle of C = A Aᵀ."""
    which = some(len(A), C[0].size)
    allowed = np.finfo(A.dtype).eps * np.sqrt(A.shape[2] + 2)
    A, C = _host(A, which), _host(C, which)
    error = np.tril(np.abs(C - A @ _t(A)) / np.maximum(allowed * (np.abs(A) @ np.abs(_t(A))), TINY))
    return np.inf if np.triu(C, 1).any() else _worst(error) / GEMM_LIMIT


def lu(A, LU, piv):
    """(batch, m, n), as lu_factor returns the factors and interchanges."""
    which = some(len(A), A[0].size)
    epsilon, (m, n), k = np.finfo(A.dtype).eps, A.shape[1:], min(A.shape[1:])
    A, LU, piv = _host(A, which), _host(LU, which), _host(piv, which).astype(int)
    L, U = np.tril(LU[:, :, :k], -1) + np.eye(m, k), np.triu(LU[:, :k])
    norms = np.maximum(_norm(A), TINY)
    for P, rows in zip(A, piv):
        for i, p in enumerate(rows):
            P[[i, p]] = P[[p, i]]
    grown = np.abs(L).max(initial=0) > 1 + 4 * epsilon
    return np.inf if grown else _worst(_norm(A - L @ U) / (max(m, n) * epsilon * norms)) / LU_LIMIT


def cholesky(A, L):
    """A = L Lᵀ."""
    which = some(len(A), A[0].size)
    allowed = A.shape[1] * np.finfo(A.dtype).eps
    A, L = _host(A, which), _host(L, which)
    error = _worst(_norm(A - L @ _t(L)) / (allowed * np.maximum(_norm(A), TINY))) / LU_LIMIT
    return np.inf if np.triu(L, 1).any() else error


def cholesky_solution(L, x, b):
    """L Lᵀ x = b, (batch, n) each."""
    which = some(len(L), L[0].size)
    allowed = L.shape[1] * np.finfo(L.dtype).eps
    L, x, b = _host(L, which), _host(x, which)[..., None], _host(b, which)[..., None]
    A = L @ _t(L)
    return _worst(_norm(b - A @ x) / (allowed * np.maximum(_norm(A) * _norm(x), TINY))) / LU_LIMIT


def _host(M, which):
    return np.stack([to_host(M[int(b)]) for b in which]).astype(np.float64)


def _departure(Q, epsilon):
    m, k = Q.shape[1:]
    return _norm(np.eye(k) - _t(Q) @ Q) / (m * epsilon)


def _norm(M):
    return np.linalg.norm(M, axis=(1, 2))


def _t(M):
    return M.swapaxes(1, 2)


def _worst(errors):
    """The largest; infinite where any is NaN."""
    return float(np.nan_to_num(errors, nan=np.inf, posinf=np.inf).max(initial=0))
