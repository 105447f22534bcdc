"""Which back end an array belongs to, and the (batch, m, n) form that the back ends work on."""

from functools import cache

import numpy as np

from h2gpu.batched.arrays import array_module
from h2gpu.batched.checks import REAL, checked, stack
from h2gpu.batched.ragged import MatrixBatch


def twin(A):
    """The back end of an array: h2gpu.batched.cpu or, imported on first need, h2gpu.batched.cuda."""
    xp = A.xp if isinstance(A, MatrixBatch) else array_module(A)
    if xp is np:
        from h2gpu.batched import cpu

        return cpu
    return _cuda()


@cache  # an import statement asks again each time
def _cuda():
    from h2gpu.batched import cuda

    return cuda


def over_leading(work, A, dtypes=REAL):
    """work on the (batch, m, n) form of A, results given A's leading dimensions again."""
    A = checked(A, "A", dtypes)
    if isinstance(A, MatrixBatch):
        return work(A)
    results = work(stack(A))
    if A.ndim == 3:
        return results
    if isinstance(results, tuple):
        return tuple(M.reshape((*A.shape[:-2], *M.shape[1:])) for M in results)
    return results.reshape((*A.shape[:-2], *results.shape[1:]))
