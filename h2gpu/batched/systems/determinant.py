"""Determinants from LU factors on the GPU: kernels/systems/lu_determinant.cuh."""

import cupy
import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, launch
from h2gpu.batched.systems.lu import lu_factor

DETERMINANT_WARPS = 4


def slogdet(A):
    """See h2gpu.batched.slogdet."""
    LU, piv, _ = lu_factor(A, "auto")
    sign, logarithm = cupy.empty(len(A), A.dtype), cupy.empty(len(A), np.dtype(A.dtype.char.lower()))
    if isinstance(A, MatrixBatch):
        every = np.arange(len(A))
        row = np.stack([LU.offsets, LU.offsets, piv.offsets, LU.rows, LU.columns, every], axis=1).astype(np.int64)
        buffers, n = (LU.buffer, piv.buffer, sign, logarithm, cupy.asarray(row)), 0
    else:
        buffers, n = (LU, piv, sign, logarithm, NULL), A.shape[-1]
    function = kernel("systems/lu_determinant.cuh", "lu_determinant", A.dtype, DETERMINANT_WARPS)
    blocks = -(-len(A) // DETERMINANT_WARPS)
    launch(function, blocks, DETERMINANT_WARPS * WARP, (*buffers, n, np.int64(len(A))))
    return sign, logarithm
