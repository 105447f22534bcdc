"""min ‖A_b x_b − b_b‖ on the CPU: LAPACK's GELSD for each problem."""

import numpy as np

from h2gpu.batched.threads import parallel, pieces

TOGETHER = 1 << 16  # entries of the matrices that a thread takes at a time


def lstsq(A, b, rcond):
    """See h2gpu.batched.lstsq."""
    X, rank = np.zeros((len(A), A.shape[-1], b.shape[-1]), A.dtype), np.zeros(len(A), np.int32)

    def keep(i, x, found, s):
        X[i], rank[i] = x, found

    if X.size:
        each(A, b, rcond, keep)
    return X, rank


def each(A, b, rcond, keep):
    """keep(i, x, rank, singular values) for each problem i, some at a time on a thread."""

    def run(piece):
        for i in range(piece.start, min(piece.stop, len(A))):
            x, _, rank, s = np.linalg.lstsq(A[i], b[i], rcond=rcond)
            keep(i, x, rank, s)

    parallel(run, pieces(np.full(len(A), max(1, A[:1].size)), TOGETHER))
