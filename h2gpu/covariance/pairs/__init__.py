"""Function values at all pairs of points, for many pairs of point sets at once: the blocks of a covariance matrix."""

from collections.abc import Callable

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.batched.core.dispatch import twins_of
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.typing import Array

twin = twins_of(__name__)


def pairwise(
    function: Callable[..., Array], X: MatrixBatch, Y: MatrixBatch, out: MatrixBatch | None = None
) -> MatrixBatch:
    """Function values at all pairs of points of two sets, for many pairs of sets: A_b[i, j] = function(X_b[i], Y_b[j]).

    function   function(x, y) by broadcasting over all but the last dimension
    X, Y       MatrixBatch of points × dim, the points of one buffer, such as `MatrixBatch.from_rows` makes

    Raises ValueError for points that the covariance does not take.
    Source: Mathematics page: the blocks D and S of an H²-matrix.

    >>> import numpy as np
    >>> from h2gpu import batched, covariance
    >>> X = batched.MatrixBatch.from_matrices([np.zeros((2, 1)), np.ones((3, 1))])
    >>> values = covariance.pairwise(covariance.Exponential().values, X, X)
    >>> values[0].tolist(), values.rows.tolist()
    ([[1.0, 1.0], [1.0, 1.0]], [2, 3])
    """
    if out is None:
        out = MatrixBatch.empty(X.rows, Y.rows, X.dtype, X.xp, (X.bounds[0], Y.bounds[0]))
    return twin(out).pairwise(function, X, Y, out)


def values_between(cov, X, Y):
    """cov of all pairs of embedded points X (m, d) and Y (n, d), (m, n), without nugget: on a GPU by the kernel of the
    matrix where one knows it, which several array operations would have to be compiled for."""
    xp = array_module(X)
    if xp is np or cov.pair_function.on_device(X.shape[1], X.dtype) is None:
        return cov.values(X[:, None], Y[None])
    out = xp.empty((len(X), len(Y)), X.dtype)
    stacks = (MatrixBatch.from_stack(xp.ascontiguousarray(A)[None]) for A in (X, Y, out))
    pairwise(cov.pair_function, *stacks)
    return out
