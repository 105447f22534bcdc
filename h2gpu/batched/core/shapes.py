"""The (batch, m, n) form that the twins work on, for arrays with any leading dimensions."""

from h2gpu.batched.core.checks import REAL, checked, stack
from h2gpu.batched.core.matrix_batch import MatrixBatch


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
