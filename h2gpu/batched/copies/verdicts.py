"""Errors that name the matrices of a batch which failed: what kernels left in `info` is looked at once for all.

A GPU is waited for, but no numbers are copied unless a matrix failed: a kernel writes one word for the batch.
"""

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.batched.copies import signs
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.status import NOT_FINITE, failure


def check(info, name="svd", first=0):
    """LinAlgError naming the matrices of negative info, of any shape; waits for a GPU. first: number of the first."""
    if signs(info)[0]:
        raise failure(name, to_host(info).ravel(), first)


def refuse(info, name, reason):
    """LinAlgError naming the matrices whose info, of any shape, is not 0; waits for a GPU. reason: of positive info."""
    if any(signs(info)):
        raise failure(name, to_host(info).ravel(), positive=reason)


def refuse_nonfinite(A, name):
    """LinAlgError naming the matrices that hold NaN or Inf."""
    if not np.isfinite(A.entries if isinstance(A, MatrixBatch) else A).all():
        check(np.array([0 if np.isfinite(A[b]).all() else NOT_FINITE for b in range(len(A))]), name)
