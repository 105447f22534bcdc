"""The reference for QR: LAPACK through NumPy and SciPy, threaded over the batch."""

import numpy as np
import scipy.linalg

from h2gpu.batched.copies.verdicts import refuse_nonfinite
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.tails import rank_within
from h2gpu.batched.device.stacks import each, like, shapes
from h2gpu.batched.device.threads import parallel
from h2gpu.batched.qr.products import factor_stacks as triangles_of_products

__all__ = ["cholesky_basis", "cholesky_qr", "pivoted_qr", "qr", "triangles_of_products"]

TOGETHER = 8  # matrices of one LAPACK call, so that NumPy lets the other threads run


def qr(A, mode, out=None):
    m, n = shapes(A)
    R = like(A, np.minimum(m, n), n) if out is None else out
    if mode == "r":
        return (
            triangles(A, R) if isinstance(A, MatrixBatch) else each(lambda A: (np.linalg.qr(A, mode="r"),), [R], A)[0]
        )
    Q = like(A, m, np.minimum(m, n))
    return tuple(each(np.linalg.qr, [Q, R], A))


def triangles(A, R):
    """R of each matrix of a ragged batch, TOGETHER at a time: rows of zeros, which change no R, make them one height.

    NumPy keeps the interpreter lock in calls for fewer than about 8 matrices: measured on two threads, 1300 × 100
    matrices one by one run no faster than on one thread, eight at a time 2.2 times faster.
    """
    order = np.lexsort((A.rows, A.columns))
    cuts = np.flatnonzero(np.diff(A.columns[order])) + 1
    groups = [part[i : i + TOGETHER] for part in np.split(order, cuts) for i in range(0, len(part), TOGETHER)]

    def run(group):
        stack = np.zeros((len(group), A.rows[group].max(initial=0), A.columns[group].max(initial=0)), A.dtype)
        for b, index in enumerate(group):
            stack[b, : A.rows[index]] = A[int(index)]
        for index, triangle in zip(group, np.linalg.qr(stack, mode="r")):
            R[int(index)][...] = triangle[: R.rows[index]]

    parallel(run, groups)
    return R


def cholesky_qr(A, before=None):
    """By reflections, which never fail."""
    P, R = qr(A, "reduced")
    return P, R if before is None else R @ before, None


def cholesky_basis(A):
    """By reflections: X is the identity."""
    return qr(A, "reduced")[0], None


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
    r = rank_within(scale * np.linalg.norm(R.astype(np.float64) / scale, axis=1), atol)
    return Q[:, :r], R[:r], pivots
