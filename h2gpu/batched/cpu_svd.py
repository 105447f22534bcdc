"""The reference for singular values and pivoted QR: LAPACK, matrix by matrix, threaded over the batch.

    A_b = U_b diag(s_b) Vt_b        A_b P_b = Q_b R_b + E_b,  ‖E_b‖_F ≤ atol_b

Matrices that hold NaN or Inf are found first: LAPACK would make garbage of them without a word.
"""

import numpy as np
import scipy.linalg

from h2gpu import batched
from h2gpu.batched.cpu_stacks import each, like, shapes
from h2gpu.batched.ragged import MatrixBatch
from h2gpu.batched.threads import parallel
from h2gpu.batched.verdict import NOT_CONVERGED, NOT_FINITE, check


def refuse_nonfinite(A, name):
    """LinAlgError naming the matrices that hold NaN or Inf."""
    if not np.isfinite(A.entries if isinstance(A, MatrixBatch) else A).all():
        check(np.array([0 if np.isfinite(A[b]).all() else NOT_FINITE for b in range(len(A))]), name)


def svd(A, vectors, method, return_info=False):
    """LAPACK's divide and conquer, whatever the method asked for: the methods are kernels of the GPU."""
    if not return_info:
        refuse_nonfinite(A, "svd")
    m, n = shapes(A)
    k = np.minimum(m, n)
    U, s, Vt = like(A, m, k), like(A, k, 1), like(A, k, n)
    outputs = {"both": [U, s, Vt], "left": [U, s], "none": [s]}[vectors]
    if return_info:
        return *outputs, each_by_itself(A, outputs, vectors)
    each(lambda A: factors(A, vectors), outputs, A)
    return tuple(outputs) if len(outputs) > 1 else s


def factors(A, vectors):
    """U, s, Vt of a stack or of one matrix, as far as wanted; s as columns."""
    if vectors == "none":
        return (np.linalg.svd(A, compute_uv=False)[..., None],)
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    return (U, s[..., None], Vt)[: 3 if vectors == "both" else 2]


def svd_of_transposed(R, vectors, rank=None, rest=None, left=None):
    """See h2gpu.batched.svd_of_transposed; raises for NaN and Inf."""
    if isinstance(R, MatrixBatch):
        return *svd(batched.transpose(R), vectors, "auto"), np.zeros(len(R), np.int32)
    U, s, *Vt = svd(R.swapaxes(1, 2), vectors, "auto")
    if rest is not None:
        Vt = [np.linalg.solve(np.eye(rest.shape[1]) + rest, M.swapaxes(1, 2)).swapaxes(1, 2) for M in Vt]
    U = U if left is None else left @ U
    return U[..., :rank], s[:, :rank, 0], *(M[:, :rank] for M in Vt), np.zeros(len(R), np.int32)


def each_by_itself(A, outputs, vectors):
    """The SVDs into outputs, NaN where there is none, and for each matrix 0 or why."""
    info = np.zeros(len(A), np.int32)
    for b in range(len(A)):
        try:
            info[b] = 0 if np.isfinite(A[b]).all() else NOT_FINITE
            results = factors(A[b], vectors) if info[b] == 0 else [np.nan] * len(outputs)
        except np.linalg.LinAlgError:
            info[b], results = NOT_CONVERGED, [np.nan] * len(outputs)
        for out, result in zip(outputs, results):
            out[b][...] = result
    return info


def pivoted_qr(A, atol, padded=False):
    """See h2gpu.batched.pivoted_qr: LAPACK's GEQP3, cut where the rest is small; padded: with zeros, as arrays."""
    refuse_nonfinite(A, "pivoted_qr")
    parts = parallel(lambda b: one_pivoted_qr(A[b], atol[b]), range(len(A)))
    ranks = np.array([Q.shape[1] for Q, _, _ in parts], np.int64)
    k = np.minimum(A.rows, A.columns) if padded else ranks
    Q, R = MatrixBatch.zeros(A.rows, k, A.dtype), MatrixBatch.zeros(k, A.columns, A.dtype)
    pivots = MatrixBatch.empty(A.columns, 1, np.int32)
    for b, (q, r, p) in enumerate(parts):
        Q[b][:, : ranks[b]], R[b][: ranks[b]], pivots[b][:, 0] = q, r, p
    return Q, R, pivots, ranks


def one_pivoted_qr(A, atol):
    """Q, R, pivots of one matrix."""
    if not min(A.shape):
        return A[:, :0], A[:0], np.arange(A.shape[1])
    Q, R, pivots = scipy.linalg.qr(A, mode="economic", pivoting=True, check_finite=False)
    scale = np.ldexp(1.0, np.frexp(float(np.abs(R).max()))[1])  # squares stay in range, and digits as they are
    r, _ = cut(scale * np.linalg.norm(R.astype(np.float64) / scale, axis=1), atol)
    return Q[:, :r], R[:r], pivots


def cut(values, atol):
    """The smallest r with (Σ_{i≥r} values_i²)^½ ≤ atol, and that root."""
    scale = values.max(initial=0) or 1.0
    tail = scale * np.sqrt(np.cumsum((values[::-1] / scale) ** 2))[::-1]
    r = int(np.count_nonzero(tail > atol))
    return r, tail[r] if r < len(tail) else 0.0


def shared_ranks(sigma, allowance):
    """See h2gpu.batched.shared_ranks."""
    squares, allowance = sigma.astype(np.float64) ** 2, np.maximum(allowance, 0.0)
    small = np.sort(squares[(squares > 0) & (squares <= allowance)])  # larger ones are kept in any case
    discarded = np.searchsorted(np.cumsum(small), allowance, side="right")
    if discarded == len(small):
        return np.count_nonzero(squares > allowance, axis=1)
    return np.count_nonzero(squares >= small[discarded], axis=1)


def discarded(sigma, ranks):
    """See h2gpu.batched.discarded."""
    return np.sum(np.where(np.arange(sigma.shape[1]) < ranks[:, None], 0, sigma.astype(np.float64)) ** 2)


def truncated_svd(A, atol, padded=False, return_info=False, consume=False):
    """See h2gpu.batched.truncated_svd: a full SVD without what of its tail is small enough."""
    U, s = svd(A, "left", "auto")
    cuts = np.array([cut(x[:, 0].astype(np.float64), a) for x, a in zip(s.matrices(), atol)]).reshape(-1, 2)
    ranks, missed = cuts[:, 0].astype(np.int64), cuts[:, 1]
    k = np.minimum(A.rows, A.columns) if padded else ranks
    Q, t = MatrixBatch.zeros(A.rows, k, A.dtype), MatrixBatch.zeros(k, 1, A.dtype)
    for u, q, x, y, r in zip(U.matrices(), Q.matrices(), s.matrices(), t.matrices(), ranks.tolist()):
        q[:, :r], y[:r] = u[:, :r], x[:r]
    return (Q, t, missed, np.zeros(len(A), np.int32)) if return_info else (Q, t, missed)
