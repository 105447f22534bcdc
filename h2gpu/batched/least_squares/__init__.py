"""Least squares with many small matrices: x minimizes ‖A x − b‖, and ‖x‖ where A has not full rank."""

import numpy as np

from h2gpu.arrays import any_array
from h2gpu.batched.core.checks import checked, columns_of, stack
from h2gpu.batched.core.dispatch import twins_of
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.registers import DTYPES
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike

twin = twins_of(__name__)


@any_array
def lstsq(A: ArrayLike, b: ArrayLike, rcond: float | None = None) -> tuple[Array, Array]:
    """x_b that minimizes ‖A_b x_b − b_b‖, the one of least norm where there are many; and the rank of every A_b.

    A       (batch, m, n) array, float32, float64 or complex64
    b       (batch, m) vectors, or (batch, m, k)
    rcond   singular values up to rcond times the largest are zero; default max(m, n) ε, as numpy.linalg.lstsq

    x (batch, n[, k]) and rank (batch,) int32, where A lives. On the GPU by QR in registers where that surely has full
    rank, by singular values elsewhere. Raises ValueError for bad arguments, LinAlgError naming the matrices that hold
    NaN or Inf. Source: Anderson, Sheffield & Keutzer (2012), section III.D; LAPACK's GELSD.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = np.random.default_rng(0).standard_normal((10, 6, 4))
    >>> x, rank = batched.lstsq(A, np.ones((10, 6)))
    >>> residual = A @ x[..., None] - 1
    >>> bool(np.allclose(A.transpose(0, 2, 1) @ residual, 0))
    True
    """
    if isinstance(A, MatrixBatch):
        raise ValueError("lstsq: expected an array (batch, m, n), got a MatrixBatch; group problems of one shape")
    A = checked(A, "lstsq", DTYPES)
    right = columns_of(A, b, "lstsq")
    (*lead, m, n), epsilon = A.shape, np.finfo(A.dtype).eps
    if rcond is not None and not (isinstance(rcond, (int, float, np.number)) and 0 <= rcond < 1):
        raise ValueError(f"lstsq: expected rcond None or a number from 0 to below 1, got {brief(rcond)}")
    rcond = float(epsilon) * max(m, n) if rcond is None else float(rcond)
    x, rank = twin(A).lstsq(stack(A), right, rcond)
    return x.reshape(*lead, n, *np.shape(b)[A.ndim - 1 :]), rank.reshape(lead)
