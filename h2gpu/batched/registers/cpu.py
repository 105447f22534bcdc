"""The reference for h2gpu.batched.registers: steps of the elimination one by one, each for the whole batch at once."""

import numpy as np

from h2gpu.batched.device.threads import parallel, pieces

TOGETHER = 1 << 16  # entries of the matrices that a thread takes at a time


def lu(A, layout=None):
    """See h2gpu.batched.registers.lu."""
    return _eliminated(A, A.shape[-1], False)


def solve(A, b, jordan, layout=None):
    """See h2gpu.batched.registers.solve."""
    n = A.shape[-1]
    X, info = _eliminated(np.concatenate((A, b), axis=2), n, jordan)
    U, x = X[..., :n], X[..., n:]
    if not jordan:
        with np.errstate(all="ignore"):
            for k in range(n)[::-1]:
                x[:, k] = _divided(x[:, k], U[:, k, k, None])
                x[:, :k] -= U[:, :k, k, None] * x[:, k, None]
    return np.ascontiguousarray(x), info


def cholesky(A, layout=None):
    """See h2gpu.batched.registers.cholesky."""
    L = np.tril(A)
    info = np.where(np.isfinite(L).all(axis=(1, 2)), 0, -1).astype(np.int32)
    with np.errstate(all="ignore"):
        for k in range(A.shape[-1]):
            pivot = L[:, k, k].real.copy()
            info[(info == 0) & ~(pivot > 0)] = k + 1
            L[:, k:, k] /= np.sqrt(pivot)[:, None]
            L[:, k, k] = np.sqrt(pivot)
            L[:, k + 1 :, k + 1 :] -= np.tril(L[:, k + 1 :, k, None] * L[:, None, k + 1 :, k].conj())
    return L, info


def qr(A, layout=None):
    """See h2gpu.batched.registers.qr."""
    QR, tau = np.linalg.qr(A, mode="raw")
    info = np.where(np.isfinite(A).all(axis=(1, 2)), 0, -1).astype(np.int32)
    return np.ascontiguousarray(QR.swapaxes(1, 2)).astype(A.dtype), tau.astype(A.dtype), info


def least_squares(A, b, layout=None):
    """See h2gpu.batched.registers.least_squares; the bound is the condition itself."""
    (batch, _, n), k = A.shape, b.shape[-1]
    X, condition = np.zeros((batch, n, k), A.dtype), np.zeros(batch, A.real.dtype)

    def keep(i, x, rank, s):
        X[i], condition[i] = x, s[0] / s[-1] if n and s[-1] else np.inf if n else 0

    with np.errstate(all="ignore"):
        each_least_squares(A, b, 0, keep)
    return X, condition


def each_least_squares(A, b, rcond, keep):
    """keep(i, x, rank, singular values) for each problem i, some at a time on a thread."""

    def run(piece):
        for i in range(piece.start, min(piece.stop, len(A))):
            x, _, rank, s = np.linalg.lstsq(A[i], b[i], rcond=rcond)
            keep(i, x, rank, s)

    parallel(run, pieces(np.full(len(A), max(1, A[:1].size)), TOGETHER))


def _eliminated(A, n, jordan):
    """Gaussian elimination of the first n columns, all rows where Gauss-Jordan; and info."""
    X, epsilon = A.copy(), np.finfo(A.dtype).eps
    info = np.where(np.isfinite(A[..., :n]).all(axis=(1, 2)), 0, -1).astype(np.int32)
    with np.errstate(all="ignore"):
        for k in range(n):
            pivot = X[:, k, k]
            multipliers = _divided(X[:, k + 1 :, k], pivot[:, None])
            fine = (np.abs(pivot) > 0) & (np.abs(multipliers).max(axis=1, initial=0) <= epsilon**-0.5)
            info[(info == 0) & ~fine] = k + 1
            if jordan:
                X[:, k, k + 1 :] = _divided(X[:, k, k + 1 :], pivot[:, None])
                for rows in (slice(0, k), slice(k + 1, None)):
                    X[:, rows, k + 1 :] -= X[:, rows, k, None] * X[:, k, None, k + 1 :]
            else:
                X[:, k + 1 :, k] = multipliers
                X[:, k + 1 :, k + 1 :] -= multipliers[..., None] * X[:, k, None, k + 1 :]
    return X, info


def _divided(x, by):
    """x / by, zero where by is."""
    return np.where(by == 0, 0, x / np.where(by == 0, 1, by)).astype(x.dtype)
