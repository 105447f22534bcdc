"""The reference for QR: LAPACK through NumPy and SciPy, threaded over the batch."""

import numpy as np
import scipy.linalg

from h2gpu.batched.copies.verdicts import refuse_nonfinite
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.batched.core.tails import rank_within
from h2gpu.batched.device.stacks import each, like, same_shapes, shapes, stack, transposed, windows
from h2gpu.batched.device.threads import parallel

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

    def run(group):
        stacks = np.zeros((len(group), A.rows[group].max(initial=0), A.columns[group].max(initial=0)), A.dtype)
        for b, index in enumerate(group):
            stacks[b, : A.rows[index]] = A[int(index)]
        for index, triangle in zip(group, np.linalg.qr(stacks, mode="r")):
            R[int(index)][...] = triangle[: R.rows[index]]

    parallel(run, _alike(A.rows, A.columns))
    return R


def _alike(rows, columns):
    """Groups of TOGETHER matrices of as many columns and about as many rows."""
    order = np.lexsort((rows, columns))
    cuts = np.flatnonzero(np.diff(columns[order])) + 1
    return [part[i : i + TOGETHER] for part in np.split(order, cuts) for i in range(0, len(part), TOGETHER)]


def triangles_of_products(products, out):
    """See h2gpu.batched.triangles_of_products: the products are made in the stacks of `triangles`."""
    kinds = [_multiplier(kind) for kind in products]
    heights = sum(np.diff(offsets_of(kind.F.rows)[kind.first]) for kind in products)

    def run(group):
        stacks = np.zeros((len(group), heights[group].max(), out.columns[group[0]]), out.dtype)
        with np.errstate(invalid="ignore"):  # NaN tells of itself
            for b, rows in zip(group.tolist(), stacks):
                for multiply in kinds:
                    rows = rows[multiply(b, rows) :]
        for b, triangle in zip(group.tolist(), np.linalg.qr(stacks, mode="r")):
            W = out[b]
            W[: len(triangle)], W[len(triangle) :] = triangle[: len(W)], 0

    wanted = np.flatnonzero((out.rows > 0) & (out.columns > 0))
    parallel(run, [wanted[group] for group in _alike(heights[wanted], out.columns[wanted])])


def _multiplier(kind):
    """Function of (segment, rows) that puts the P_l of a segment one below the other into these rows: how many."""
    F, S, first = kind.F, kind.S, kind.first.tolist()

    def one_by_one(b, rows):
        count = 0
        for l in range(first[b], first[b + 1]):
            F_l = F[l]
            np.matmul(F_l, transposed(S[l], kind.turned), out=rows[count : count + len(F_l)])
            count += len(F_l)
        return count

    if not len(F) or len(same_shapes([F, S])) > 1:
        return one_by_one
    (m, k), every, right = F[0].shape, windows(F), transposed(stack(S), kind.turned)
    identity = (F.offsets == F.offsets[0]).all() and np.array_equal(F[0], np.eye(m, k))

    def together(b, rows):
        links = slice(first[b], first[b + 1])
        left = every[F.offsets[links]].reshape(-1, m, k)
        P = rows[: m * len(left)].reshape(len(left), m, rows.shape[1])
        if identity:
            P[...] = right[links]
        else:
            np.matmul(left, right[links], out=P)
        return m * len(left)

    return together


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
