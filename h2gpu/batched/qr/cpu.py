"""The reference for QR: LAPACK through NumPy and SciPy, threaded over the batch."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import scipy.linalg
from scipy.linalg import get_lapack_funcs

from h2gpu.batched.copies.verdicts import refuse_nonfinite
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.batched.core.tails import rank_within
from h2gpu.batched.device.stacks import (
    WORK_PER_TASK,
    each,
    like,
    same_shapes,
    shapes,
    stack,
    stacks,
    transposed,
    windows,
)
from h2gpu.batched.device.threads import parallel, pieces
from h2gpu.batched.qr.lapack import BLOCK, factor

__all__ = ["cholesky_basis", "cholesky_qr", "pivoted_qr", "qr", "triangles_of_products"]


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
    """R of each matrix of a ragged batch."""

    def run(piece):
        for M, W in zip(A[piece].matrices(), R[piece].matrices()):
            _triangle(M.T.copy(), W)

    parallel(run, stacks(A))
    return R


def _triangle(T, W):
    """The R-factor of Tᵀ into W, rows of zeros below it where W has more; overwrites T.

    By LAPACK's own routines: NumPy's copies each matrix three times, and takes 48 against 37 µs for 64 × 64 entries.
    """
    h = min(len(W), *T.shape)
    if T.size and not factor(T):
        (geqrf,) = get_lapack_funcs(("geqrf",), dtype=T.dtype)
        T = geqrf(T.T, lwork=BLOCK * len(T), overwrite_a=True)[0].T
    np.multiply(T[:, :h].T, _upper(h, len(T), T.dtype), out=W[:h])
    W[h:] = 0


@lru_cache(maxsize=256)
def _upper(m, n, dtype):
    """Ones where an (m, n) R-factor is not zero: a product with it takes a third of `np.triu` and a copy."""
    return np.triu(np.ones((m, n), dtype))


def triangles_of_products(products, out):
    """See h2gpu.batched.triangles_of_products: each stack is made where LAPACK factors it."""
    products = [_used(kind) for kind in products]
    kinds = [_multiplier(kind) for kind in products]
    heights = sum(np.diff(offsets_of(kind.F.rows)[kind.first]) for kind in products)

    def run(piece):
        with np.errstate(invalid="ignore"):  # NaN tells of itself
            for b in range(piece.start, piece.stop):
                if not out.rows[b] or not out.columns[b]:
                    continue
                T, rest = np.empty((out.columns[b], heights[b]), out.dtype), 0
                for multiply in kinds:
                    rest += multiply(b, T[:, rest:])
                _triangle(T, out[b])

    parallel(run, pieces(heights * out.columns, WORK_PER_TASK))


def _used(kind):
    """Without the links of segments that are not asked for: all clusters' links may be given for some of them."""
    start, stop = int(kind.first[0]), int(kind.first[-1])
    return replace(kind, F=kind.F[start:stop], S=kind.S[start:stop], first=kind.first - start)


def _multiplier(kind):
    """Function of (segment, T) that puts the P_lᵀ of a segment side by side into columns of T, and returns how many."""
    F, S, first = kind.F, kind.S, kind.first.tolist()

    def one_by_one(b, T):
        count = 0
        for l in range(first[b], first[b + 1]):
            F_l = F[l]
            np.matmul(transposed(S[l], not kind.turned), F_l.T, out=T[:, count : count + len(F_l)])
            count += len(F_l)
        return count

    if not len(F) or len(same_shapes([F, S])) > 1:
        return one_by_one
    (m, k), every, right = F[0].shape, windows(F), transposed(stack(S), not kind.turned)
    identity = (F.offsets == F.offsets[0]).all() and np.array_equal(F[0], np.eye(m, k))

    def together(b, T):
        links = slice(first[b], first[b + 1])
        count = links.stop - links.start
        if not count or not m:
            return 0
        P = T[:, : m * count].reshape(len(T), count, m).swapaxes(0, 1)
        if identity:
            P[...] = right[links]
        else:
            np.matmul(right[links], every[F.offsets[links]].reshape(-1, m, k).swapaxes(1, 2), out=P)
        return m * count

    return together


def cholesky_qr(A, before=None):
    """By reflections, which never fail."""
    P, R = qr(A, "reduced")
    return P, R if before is None else R @ before, None


def cholesky_basis(A):
    """By reflections: X is the identity."""
    return qr(A, "reduced")[0], None


def pivoted_qr(A, atol, mode="reduced", padded=False):
    """See h2gpu.batched.pivoted_qr: LAPACK's GEQP3, cut where the rest is small; padded: with zeros, as arrays."""
    refuse_nonfinite(A, "pivoted_qr")
    parts = parallel(lambda b: one_pivoted_qr(A[b], atol[b], mode), range(len(A)))
    ranks = np.array([len(R) for *_, R, _ in parts], np.int64)
    k = np.minimum(A.rows, A.columns) if padded else ranks
    Q = MatrixBatch.zeros(A.rows, k, A.dtype) if mode == "reduced" else None
    R, pivots = MatrixBatch.zeros(k, A.columns, A.dtype), MatrixBatch.empty(A.columns, 1, np.int32)
    for b, (*q, r, p) in enumerate(parts):
        R[b][: ranks[b]], pivots[b][:, 0] = r, p
        if q:
            Q[b][:, : ranks[b]] = q[0]
    return (R, pivots, ranks) if Q is None else (Q, R, pivots, ranks)


def one_pivoted_qr(A, atol, mode="reduced"):
    """Q, not in mode "r", R and pivots of one matrix."""
    if not min(A.shape):
        return *([A[:, :0]] if mode == "reduced" else []), A[:0], np.arange(A.shape[1])
    *Q, R, pivots = scipy.linalg.qr(A, mode="r" if mode == "r" else "economic", pivoting=True, check_finite=False)
    R = R[: min(A.shape)]
    scale = np.ldexp(1.0, np.frexp(float(np.abs(R).max()))[1])  # squares stay in range, and digits as they are
    r = rank_within(scale * np.linalg.norm(R.astype(np.float64) / scale, axis=1), atol)
    return *(q[:, :r] for q in Q), R[:r], pivots
