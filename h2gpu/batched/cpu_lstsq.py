"""min ‖A_b x_b − b_b‖ on the CPU: LAPACK's GELSD for each problem."""

import numpy as np

from h2gpu.batched.cpu_small import TOGETHER
from h2gpu.batched.threads import parallel, pieces


def lstsq(A, b, rcond):
    """See h2gpu.batched.lstsq."""
    (batch, _, n), k = A.shape, b.shape[-1]
    X, rank = np.zeros((batch, n, k), A.dtype), np.zeros(batch, np.int32)

    def run(piece):
        for i in range(piece.start, min(piece.stop, batch)):
            X[i], _, rank[i], _ = np.linalg.lstsq(A[i], b[i], rcond=rcond)

    if X.size:
        parallel(run, pieces(np.full(batch, max(1, A[:1].size)), TOGETHER))
    return X, rank
