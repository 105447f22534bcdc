"""Routines of `batched` against LAPACK and NumPy, matrix by matrix: residuals in units of eps.

Uniform stacks and ragged batches, float32 and float64, either layout; random, graded, deficient, tiny and huge ones.
Criteria are those of LAPACK's testers (LAPACK Working Note 41): residuals divided by n eps ‖A‖ stay below THRESHOLD.
"""

import numpy as np
import scipy.linalg
from battery import Routines, battery, expect

from h2gpu.batched import MatrixBatch

batched = Routines()
THRESHOLD = 100.0


def sizes(rng, square=False):
    m = int(2.0 ** rng.uniform(0, 6.5))
    return (m, m) if square else (m, int(2.0 ** rng.uniform(0, 6.5)))


def stack(rng, m, n, dtype, count=None):
    count = int(rng.integers(1, 30)) if count is None else count
    A = rng.standard_normal((count, m, n))
    kind = rng.integers(7)
    if kind == 1:
        A *= 10.0 ** -np.linspace(0, 12 if dtype == np.float64 else 5, n)
    elif kind == 2 and min(m, n) > 1:
        A[..., -1] = A[..., 0]
    elif kind == 3:
        A *= 10.0 ** (rng.integers(-100, 100) if dtype == np.float64 else rng.integers(-10, 10))
    elif kind == 4:
        A[rng.integers(count)] = 0
    elif kind == 5:
        A = np.round(A)
    A = A.astype(dtype)
    return np.asfortranarray(A) if kind == 6 else A


def small(residual, A, what):
    """‖residual‖ ≤ THRESHOLD · n · eps · ‖A‖, by matrix."""
    eps, n = np.finfo(A.dtype).eps, max(A.shape[-2:])
    size = np.linalg.norm(A.astype(float), axis=(1, 2))
    worst = np.linalg.norm(residual, axis=(1, 2)) / (n * eps * np.where(size > 0, size, 1))
    expect((worst <= THRESHOLD).all(), f"{what}: residual {worst.max():.3g} n eps, {A.shape}, {A.dtype}")


def orthonormal(Q, what):
    k = Q.shape[-1]
    apart = np.linalg.norm(Q.swapaxes(1, 2).astype(float) @ Q - np.eye(k), axis=(1, 2))
    expect((apart <= THRESHOLD * max(Q.shape[1:]) * np.finfo(Q.dtype).eps).all(), f"{what}: Q off by {apart.max():.3g}")


def qr(rng, dtype):
    A = stack(rng, *sizes(rng), dtype)
    Q, R = batched.qr(A)
    small(Q.astype(float) @ R - A, A, "qr")
    orthonormal(Q, "qr")
    expect((np.tril(R, -1) == 0).all(), "qr: R is no triangle")


def svd(rng, dtype):
    A = stack(rng, *sizes(rng), dtype)
    U, s, Vt = batched.svd(A)
    small((U.astype(float) * s[:, None]) @ Vt - A, A, "svd")
    orthonormal(U, "svd")
    orthonormal(Vt.swapaxes(1, 2), "svd")
    small((s - np.linalg.svd(A.astype(float), compute_uv=False))[:, None], A, "svd: values")


def bidiagonalize(rng, dtype):
    m, n = sorted(sizes(rng), reverse=True)
    A = stack(rng, m, n, dtype)
    Q, d, e, Pt = batched.bidiagonalize(A)
    B = np.zeros((len(A), n, n))
    k = np.arange(n)
    B[:, k, k], B[:, k[:-1], k[1:]] = d, e
    small(Q.astype(float) @ B @ Pt - A, A, "bidiagonalize")
    orthonormal(Q, "bidiagonalize")


def lu(rng, dtype):
    A = stack(rng, *sizes(rng), dtype)
    LU, piv, _ = batched.lu_factor(A, return_info=True)
    for a, lu_of, p in zip(A, LU, piv):
        k = min(a.shape)
        L, U = np.tril(lu_of, -1)[:, :k] + np.eye(len(a), k), np.triu(lu_of)[:k]
        permuted = a.astype(float)
        for i, j in enumerate(p):
            permuted[[i, j]] = permuted[[j, i]]
        small((L.astype(float) @ U - permuted)[None], a[None], "lu_factor")


def solve(rng, dtype):
    n, _ = sizes(rng, square=True)
    A = rng.standard_normal((int(rng.integers(1, 20)), n, n)).astype(dtype)
    b = rng.standard_normal((len(A), n, int(rng.integers(1, 5)))).astype(dtype)
    x = batched.solve(A, b).astype(float)
    bound = np.linalg.norm(A.astype(float), axis=(1, 2)) * np.linalg.norm(x, axis=(1, 2)) * n * np.finfo(dtype).eps
    expect((np.linalg.norm(A @ x - b, axis=(1, 2)) <= THRESHOLD * bound).all(), "solve: residual")
    sign, logarithm = batched.slogdet(A)
    s, l = np.linalg.slogdet(A.astype(float))
    condition = np.linalg.cond(A.astype(float))
    safe = condition * n * np.finfo(dtype).eps < 1e-2
    expect((sign[safe] == s[safe]).all(), "slogdet: sign")
    apart = np.abs(logarithm - l)[safe]
    expect((apart <= THRESHOLD * (condition * n * np.finfo(dtype).eps)[safe] + 1e-5 * np.abs(l[safe])).all(), "slogdet")


def cholesky(rng, dtype):
    n, _ = sizes(rng, square=True)
    G = rng.standard_normal((int(rng.integers(1, 20)), n, n + 2))
    A = (G @ G.swapaxes(1, 2) * 10.0 ** rng.integers(-10, 10)).astype(dtype)
    bad = rng.random(len(A)) < 0.2
    A[bad, n - 1, n - 1] = rng.choice([-1.0, np.nan]) * A[bad, n - 1, n - 1]
    L, info = batched.cholesky(A, return_info=True)
    expect(((info != 0) == bad).all(), f"cholesky: info {info.tolist()} for {bad.tolist()}")
    fine = ~bad
    if fine.any():
        small(L[fine].astype(float) @ L[fine].swapaxes(1, 2) - A[fine], A[fine], "cholesky")
        expect((batched.cholesky(A[fine]) == L[fine]).all(), "cholesky: neighbours matter")


def lstsq(rng, dtype):
    m, n = sorted(sizes(rng), reverse=True)
    A = rng.standard_normal((int(rng.integers(1, 15)), m, n)).astype(dtype)
    b = rng.standard_normal((len(A), m)).astype(dtype)
    x = batched.lstsq(A, b)
    x = (x[0] if isinstance(x, tuple) else x).reshape(len(A), n)
    for a, right, ours in zip(A.astype(float), b.astype(float), x):
        gradient = a.T @ (a @ ours - right)
        bound = np.linalg.norm(a) ** 2 * (np.linalg.norm(ours) + np.linalg.norm(right) / np.linalg.norm(a))
        expect(np.linalg.norm(gradient) <= THRESHOLD * m * np.finfo(dtype).eps * bound, "lstsq: gradient")


def gemm(rng, dtype):
    (m, k), (_, n) = sizes(rng), sizes(rng)
    count, turns = int(rng.integers(1, 20)), rng.integers(2, size=2).astype(bool)
    A, B = stack(rng, m, k, dtype, count), rng.standard_normal((count, k, n)).astype(dtype)
    alpha, beta = (float(v) for v in rng.choice([0.0, 1.0, -0.5, 3.0], 2))
    C = rng.standard_normal((count, m, n)).astype(dtype)
    a, b = (X.swapaxes(1, 2).copy() if turn else X for X, turn in zip((A, B), turns))
    got = batched.gemm(a, b, C.copy(), alpha, beta, transa=bool(turns[0]), transb=bool(turns[1]))
    exact = alpha * (A.astype(float) @ B) + beta * C
    size = abs(alpha) * (np.abs(A.astype(float)) @ np.abs(B)) + abs(beta) * np.abs(C)
    expect((np.abs(got - exact) <= 10 * (k + 2) * np.finfo(dtype).eps * size + 1e-300).all(), "gemm")


def trsm(rng, dtype):
    n, _ = sizes(rng, square=True)
    A = rng.standard_normal((int(rng.integers(1, 15)), n, n)).astype(dtype) / n + 2 * np.eye(n, dtype=dtype)
    lower, trans, left = (bool(v) for v in rng.integers(2, size=3))
    shape = (len(A), n, 3) if left else (len(A), 3, n)
    B = rng.standard_normal(shape).astype(dtype)
    X = batched.trsm(A, B, side="left" if left else "right", lower=lower, trans=trans)
    for a, x, b in zip(A, X, B):
        T = (np.tril(a) if lower else np.triu(a)).astype(float)
        T = T.T if trans else T
        apart = np.linalg.norm((T @ x if left else x @ T) - b)
        bound = n * np.finfo(dtype).eps * np.linalg.norm(T) * np.linalg.norm(x)
        expect(apart <= THRESHOLD * bound, f"trsm: residual {apart:.3g}")


def ragged(rng, dtype):
    """A MatrixBatch gives what its matrices give one by one."""
    matrices = [rng.standard_normal(sizes(rng)).astype(dtype) for _ in range(rng.integers(1, 12))]
    Q, R = batched.qr(MatrixBatch.from_matrices(matrices))
    _, s, _ = batched.svd(MatrixBatch.from_matrices(matrices))
    for b, a in enumerate(matrices):
        small((Q[b].astype(float) @ R[b] - a)[None], a[None], "ragged qr")
        values = np.asarray(s[b]).reshape(-1)
        small((values - scipy.linalg.svdvals(a.astype(float)))[None, None], a[None], "ragged svd")


def stopped(rng, dtype):
    """pivoted_qr and truncated_svd leave out at most atol."""
    A = stack(rng, *sizes(rng), dtype)
    size = np.linalg.norm(A.astype(float), axis=(1, 2))
    atol = 10.0 ** rng.uniform(-3, 0) * size
    slack = atol + THRESHOLD * max(A.shape) * np.finfo(dtype).eps * size
    Q, R, pivots, _ = batched.pivoted_qr(A, atol)
    permuted = np.take_along_axis(A, pivots[:, None].astype(int), 2)
    expect(
        (np.linalg.norm(permuted - Q.astype(float) @ R, axis=(1, 2)) <= slack).all(), "pivoted_qr: too much left out"
    )
    U, _, _ = batched.truncated_svd(A, atol)
    rest = A - U.astype(float) @ (U.swapaxes(1, 2).astype(float) @ A)
    expect((np.linalg.norm(rest, axis=(1, 2)) <= slack).all(), "truncated_svd: too much left out")


ROUTINES = {f.__name__: f for f in (qr, svd, stopped, bidiagonalize, lu, solve, cholesky, lstsq, gemm, trsm, ragged)}


@battery("numerics: batched routines")
def routines(rng, folder):
    name = str(rng.choice(list(ROUTINES)))
    ROUTINES[name](rng, (np.float32, np.float64)[rng.integers(2)])
    return name
