"""Determinants from LU factors on the GPU: kernels/systems/lu_determinant.cuh."""

import cupy
import numpy as np

from h2gpu.arrays import moved
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, Ready
from h2gpu.batched.device.plans import remembered
from h2gpu.batched.systems.lu import lu_factor

DETERMINANT_WARPS = 4


def slogdet(A):
    """See h2gpu.batched.slogdet."""
    sign, logarithm = cupy.empty(len(A), A.dtype), cupy.empty(len(A), np.dtype(A.dtype.char.lower()))
    _run(A, NULL, sign, logarithm)
    return sign, logarithm


def det(A):
    """See h2gpu.batched.det."""
    determinant = cupy.empty(len(A), A.dtype)
    _run(A, determinant, NULL, NULL)
    return determinant


def _run(A, *results):
    LU, piv, _ = lu_factor(A, "auto")
    if isinstance(A, MatrixBatch):
        every = np.arange(len(A))
        row = np.stack([LU.offsets, LU.offsets, piv.offsets, LU.rows, LU.columns, every], axis=1).astype(np.int64)
        factors, table, n = (LU.buffer, piv.buffer), moved(row, cupy), 0
    else:
        factors, table, n = (LU, piv), NULL, A.shape[-1]
    plan(A.dtype, len(A), n)(*factors, *results, table)


@remembered
def plan(dtype, batch, n):
    """The launch for factors of order n, or of orders in a table."""
    function = kernel("systems/lu_determinant.cuh", "lu_determinant", dtype, DETERMINANT_WARPS)
    blocks = -(-batch // DETERMINANT_WARPS)
    return Ready(function, blocks, DETERMINANT_WARPS * WARP, 0, (n, np.int64(batch)))
