"""The reference for singular values: LAPACK, matrix by matrix, threaded over the batch.

    A_b = U_b diag(s_b) Vt_b

Matrices that hold NaN or Inf are found first: LAPACK would make garbage of them without a word.
"""

import numpy as np

from h2gpu.batched.copies import leading, transpose
from h2gpu.batched.copies.verdicts import refuse_nonfinite
from h2gpu.batched.core.checks import precision
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.status import NOT_CONVERGED, NOT_FINITE
from h2gpu.batched.core.tails import padded as columns
from h2gpu.batched.core.tails import rank_within, tails
from h2gpu.batched.device.stacks import each, like, shapes


def svd(A, vectors, method, return_info=False):
    """LAPACK's divide and conquer, whatever the method asked for: the methods are kernels of the GPU."""
    if not return_info:
        refuse_nonfinite(A, "svd")
    m, n = shapes(A)
    k = np.minimum(m, n)
    U, s, Vt = like(A, m, k), like(A, k, 1, precision(A.dtype)), like(A, k, n)
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
        return *svd(transpose(R), vectors, "auto"), np.zeros(len(R), np.int32)
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
    refuse_nonfinite(A, "truncated_svd")
    k = np.minimum(A.rows, A.columns)
    U = MatrixBatch(A.buffer, A.offsets, A.rows, k) if consume else like(A, A.rows, k)
    s = like(A, k, 1, precision(A.dtype))
    each(lambda M: factors(M, "left"), [U, s], A)
    sigma = columns(s)
    ranks = rank_within(sigma, np.asarray(atol)[:, None])
    missed = np.pad(tails(sigma), [(0, 0), (0, 1)])[np.arange(len(A)), ranks]
    if padded:
        Q, t = MatrixBatch.zeros(A.rows, k, A.dtype), MatrixBatch.zeros(k, 1, A.dtype)
        for u, q, x, y, r in zip(U.matrices(), Q.matrices(), s.matrices(), t.matrices(), ranks.tolist()):
            q[:, :r], y[:r] = u[:, :r], x[:r]
    else:
        Q, t = leading(U, A.rows, ranks), leading(s, ranks, np.ones_like(ranks))
    return (Q, t, missed, np.zeros(len(A), np.int32)) if return_info else (Q, t, missed)
