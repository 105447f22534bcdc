"""LAPACK's criteria for factorizations, each as a fraction of its threshold: below 1 passes.

    QR    |A − QR| / (max(m, n) |A| ε), |I − QᵀQ| / (m ε) < 30          1-norms, R upper triangular
    R     |AᵀA − RᵀR| / (max(m, n) |A| |Aᵀ| ε), |σ(A) − σ(R)| / (max(m, n) |A| ε) < 30
    SVD   |A − U S Vᵀ| / (max(m, n) |A| ε), |I − UᵀU| / (m ε), |I − VVᵀ| / (n ε) < 50          S descending, ≥ 0
    GEBRD |A − Q B Pt| / (max(m, n) |A| ε) < 50, |I − QᵀQ| / (m ε), |I − Pt Ptᵀ| / (n ε) < 30
    LU    |PA − LU| / (n |A| ε), |A − LLᵀ| / (n |A| ε), |b − Ax| / (n |A| |x| ε) < 30          |L| ≤ 1
    GEMM  |C − AB| < 3 ε √(K + 2) |A| |B| entry by entry
    truncated SVD   ‖A − U UᵀA‖_F ≤ atol, columns of U orthonormal or zero

R, U and S alone are held against the singular values that LAPACK finds. Everything is computed in float64 after
division by the largest entry, so that matrices near underflow are like any other. LAPACK Working Note 41.
"""

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch

QR_THRESHOLD, SVD_THRESHOLD, GEMM_THRESHOLD = 30, 50, 3
TINY = np.finfo(np.float32).tiny


def wide(M):
    """M on the host in double precision, real or complex."""
    M = to_host(M)
    return M.astype(np.complex128 if M.dtype.kind == "c" else np.float64)


def adjoint(M):
    """Mᵀ, of complex numbers Mᴴ."""
    return M.conj().T


def over(M, number):
    """M / number, part by part: a complex quotient overflows for tiny numbers."""
    return M.real / number + 1j * (M.imag / number) if M.dtype.kind == "c" else M / number


def one_norm(A):
    """Largest column sum."""
    return np.abs(A).sum(axis=-2).max(axis=-1, initial=0)


def departure(Q, epsilon):
    """|I − QᵀQ| / (rows · ε)."""
    m, k = Q.shape
    return one_norm(np.eye(k) - adjoint(Q) @ Q) / (max(m, 1) * epsilon)


def scaled(A, *others, flushed=False):
    """A and others in float64, divided by the largest entry of A, and after A the unit of residuals, max(m, n) |A| ε.

    To the unit is added what entries near underflow lose: the rounding of a denormal number, or all of it if flushed.
    """
    limits = np.finfo(A.dtype)
    grain = float(limits.smallest_normal if flushed else limits.smallest_subnormal)
    A, *others = (wide(M) for M in (A, *others))
    largest = np.abs(A).max(initial=0) or 1.0
    A, *others = (over(M, largest) for M in (A, *others))
    unit = max(A.shape) * (one_norm(A) or 1.0) * limits.eps + A.shape[0] * grain / largest
    return A, unit, *others


def flushes(A):
    """Whether QR may take denormal numbers for zero: CuPy compiles float32 so."""
    return A.dtype in (np.float32, np.complex64)


def qr_error(A, Q, R):
    """Worst of the criteria of one matrix; infinite where shapes are wrong or R has entries below its diagonal."""
    epsilon, k = np.finfo(A.dtype).eps, min(A.shape)
    if Q.shape != (A.shape[0], k) or R.shape != (k, A.shape[1]) or not Q.dtype == R.dtype == A.dtype:
        return np.inf
    (A, unit, R), Q = scaled(A, R, flushed=flushes(A)), wide(Q)
    return worst((one_norm(A - Q @ R) / unit, departure(Q, epsilon), below(R))) / QR_THRESHOLD


def triangle_error(A, R):
    """The same of R alone: it belongs to some orthogonal Q."""
    if R.shape != (min(A.shape), A.shape[1]) or R.dtype != A.dtype:
        return np.inf
    A, unit, R = scaled(A, R, flushed=flushes(A))
    squares = one_norm(adjoint(A) @ A - adjoint(R) @ R) / (unit * (one_norm(A.T) or 1.0))
    return worst((squares, distance(singular_values(A), singular_values(R)) / unit, below(R))) / QR_THRESHOLD


def column_error(A, Q, R):
    """max_j ‖(A − QR)_j‖ / (max(m, n) ε ‖a_j‖): Householder QR is right to rounding column by column (Higham, 19.4)."""
    epsilon = np.finfo(A.dtype).eps
    (A, _, R), Q = scaled(A, R), wide(Q)
    norms = np.linalg.norm(A, axis=0)
    errors = np.linalg.norm(A - Q @ R, axis=0) / (max(A.shape) * epsilon * np.where(norms > 0, norms, 1))
    return worst(errors) / QR_THRESHOLD


def svd_error(A, U, s, Vt=None):
    """Worst of the criteria of one matrix; without Vt: UᵀA has orthogonal rows of norms s, the singular values."""
    epsilon, k, s = np.finfo(A.dtype).eps, min(A.shape), s.ravel()
    if U.shape != (A.shape[0], k) or s.shape != (k,) or U.dtype != A.dtype or s.dtype != np.finfo(A.dtype).dtype:
        return np.inf
    if disordered(s):
        return np.inf
    (A, unit, s), U = scaled(A, s), wide(U)
    errors = [departure(U, epsilon)]
    if Vt is None:
        B = adjoint(U) @ A
        oblique = one_norm(B @ adjoint(B) - np.diag(s**2)) / (unit * (one_norm(A.T) or 1.0))
        errors += [oblique, distance(singular_values(A), s) / unit, distance(np.linalg.norm(B, axis=1), s) / unit]
    elif Vt.shape == (k, A.shape[1]):
        V = adjoint(wide(Vt))
        B = s[:, None] * adjoint(V)
        errors += [departure(V, epsilon)]
    else:
        return np.inf
    return worst([*errors, one_norm(A - U @ B) / unit]) / SVD_THRESHOLD


def values_error(A, s):
    """|s − σ| / (max(m, n) |A| ε) of singular values alone."""
    s = s.ravel()
    if s.shape != (min(A.shape),) or s.dtype != np.finfo(A.dtype).dtype or disordered(s):
        return np.inf
    A, unit, s = scaled(A, s)
    return worst(distance(singular_values(A), s) / unit) / SVD_THRESHOLD


def singular_values(A):
    return np.linalg.svd(A, compute_uv=False)


def distance(s, t):
    return np.abs(s - t).max(initial=0)


def disordered(s):
    """Whether singular values are negative, not descending or not numbers."""
    return not ((s >= 0).all() and (s[1:] <= s[:-1]).all())


def below(R):
    """Infinite where R has entries below its diagonal."""
    return np.inf if np.tril(R, -1).any() else 0


def worst(errors):
    """The largest; infinite where any is NaN."""
    return float(np.nan_to_num(np.asarray(errors, float), nan=np.inf, posinf=np.inf).max(initial=0))


def on_host(M):
    """A batch of results where NumPy can see it, copied once."""
    return MatrixBatch(to_host(M.buffer), M.offsets, M.rows, M.columns) if isinstance(M, MatrixBatch) else to_host(M)


def failures(error, *batches):
    """(index, shape, fraction) of the matrices whose error is not below 1."""
    batches = [on_host(M) for M in batches]
    errors = [error(*(M[b] for M in batches)) for b in range(len(batches[0]))]
    return [(b, batches[0][b].shape, e) for b, e in enumerate(errors) if not e < 1]


def bidiagonal(d, e, upper):
    """B as a dense matrix."""
    return np.diag(d) + np.diag(e, 1 if upper else -1)


def reduction_error(A, Q, d, e, Pt):
    """Worst of the criteria of A = Q B Pt for one matrix."""
    (m, n), k, epsilon = A.shape, min(A.shape), np.finfo(A.dtype).eps
    d, e = d.ravel(), e.ravel()
    if (Q.shape, d.shape, e.shape, Pt.shape) != ((m, k), (k,), (max(k - 1, 0),), (k, n)):
        return np.inf
    if not Q.dtype == d.dtype == e.dtype == Pt.dtype == A.dtype:
        return np.inf
    A, unit, d, e = scaled(A, d, e)
    Q, Pt = Q.astype(np.float64), Pt.astype(np.float64)
    residual = one_norm(A - Q @ bidiagonal(d, e, m >= n) @ Pt) / unit
    orthogonality = departure(Q, epsilon), departure(Pt.T, epsilon)
    return worst([residual / SVD_THRESHOLD, *(part / QR_THRESHOLD for part in orthogonality)])


def truncated_error(A, U, atol):
    """‖A − U UᵀA‖_F / atol and the departure of U, whose columns may be zero, for one matrix."""
    epsilon = np.finfo(A.dtype).eps
    A, U = A.astype(np.float64), U.astype(np.float64)
    kept = U[:, np.einsum("ij,ij->j", U, U) > 0.5]
    dropped = np.inf if kept.shape[1] + np.count_nonzero(~U.any(axis=0)) < U.shape[1] else 0
    missed = np.linalg.norm(A - U @ (U.T @ A)) / (atol + epsilon * np.linalg.norm(A))
    return worst([missed, dropped, departure(kept, epsilon) / SVD_THRESHOLD])


def product_error(A, B, C):
    """Worst entry of C − A B of one product."""
    allowed = np.finfo(A.dtype).eps * np.sqrt(A.shape[1] + 2)
    A, B, C = (M.astype(np.float64) for M in (A, B, C))
    return worst(np.abs(C - A @ B) / np.maximum(allowed * (np.abs(A) @ np.abs(B)), TINY)) / GEMM_THRESHOLD


def square_error(A, C):
    """The same of the lower triangle C of A Aᵀ; infinite where C has entries above its diagonal."""
    lower = np.tril(np.ones(C.shape, bool))
    return worst([below(C.T), product_error(A, A.T, np.where(lower, C, (A @ A.T).astype(C.dtype)))])


def lu_error(A, LU, piv):
    """|P A − L U| / (n |A| ε) of one matrix; infinite where shapes are wrong or an entry of L exceeds 1."""
    (m, n), epsilon = A.shape, np.finfo(A.dtype).eps
    if LU.shape != (m, n) or piv.shape != (min(m, n),) or LU.dtype != A.dtype:
        return np.inf
    scale = float(np.abs(A).max(initial=0)) or 1.0
    wide = np.complex128 if A.dtype.kind == "c" else np.float64
    A, LU = A.astype(wide) / scale, LU.astype(wide)
    k = min(m, n)
    L, U = np.tril(LU[:, :k], -1) + np.eye(m, k), np.triu(LU[:k]) / scale
    for i, p in enumerate(piv):
        if not i <= p < m:
            return np.inf
        A[[i, p]] = A[[p, i]]
    too_large = np.inf if np.abs(L).max(initial=0) > 2**0.5 * (1 + 4 * epsilon) else 0
    return worst((one_norm(A - L @ U) / (n * (one_norm(A) or 1.0) * epsilon), too_large)) / QR_THRESHOLD


def cholesky_error(A, L):
    """|A − L Lᵀ| / (n |A| ε) of one matrix; infinite where L has entries above its diagonal."""
    epsilon = np.finfo(A.dtype).eps
    if L.shape != A.shape or L.dtype != A.dtype:
        return np.inf
    A, L = A.astype(np.float64), L.astype(np.float64)
    return worst((one_norm(A - L @ L.T) / (len(A) * (one_norm(A) or 1.0) * epsilon), below(L.T))) / QR_THRESHOLD


def solution_error(A, x, b):
    """|b − A x| / (n |A| |x| ε) of one matrix."""
    epsilon, wide = np.finfo(A.dtype).eps, np.complex128
    A, x, b = (M.astype(wide) if M.ndim == 2 else M.astype(wide)[:, None] for M in (A, x, b))
    unit = max(len(A), 1) * (one_norm(A) or 1.0) * (one_norm(x) or 1.0) * epsilon
    return worst(one_norm(b - A @ x) / unit) / QR_THRESHOLD
