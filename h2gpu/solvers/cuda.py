"""Products of sparse matrices in compressed rows, on the GPU by kernels/solvers/row_products.cuh."""

import cupy
import numpy as np

from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import launch

HEADER = "solvers/row_products.cuh"
THREADS = 256
LANES = 8  # of a row


def row_products(W, x):
    """See inverse_factor.row_products."""
    kind = cupy.result_type(W.dtype, x.dtype)
    data, x = W.data.astype(kind, copy=False), cupy.ascontiguousarray(x, kind)
    rows, columns = W.shape[0], 1 if x.ndim == 1 else x.shape[1]
    y = cupy.empty((rows, *x.shape[1:]), kind)
    indices, starts = (part.astype(np.int32, copy=False) for part in (W.indices, W.indptr))
    arrays = data, indices, starts, x, y, rows
    name, sizes = ("row_sums", ()) if columns == 1 else ("row_products", (columns,))
    launch(kernel(HEADER, name, kind, LANES, THREADS), -(-rows * LANES // THREADS), THREADS, (*arrays, *sizes))
    return y
