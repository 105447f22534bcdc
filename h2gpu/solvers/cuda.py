"""Products of sparse matrices in compressed rows, and rows of small inverse factors, on the GPU: kernels/solvers/."""

import cupy
import numpy as np

from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import WARP, launch

HEADER, FACTORS = "solvers/row_products.cuh", "solvers/small_factors.cuh"
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


def find_singular(K, L, least):
    """See small_factors.find_singular."""
    count, m, _ = K.shape
    bad = cupy.empty(count, bool)
    arguments = K, L, bad, m, count, K.dtype.type(least)
    launch(kernel(FACTORS, "find_singular", K.dtype, THREADS), -(-count * WARP // THREADS), THREADS, arguments)
    return bad


def rows_of_factors(L, growing=False):
    """See small_factors.rows_of_factors."""
    count, m, _ = L.shape
    count, shape = (m, m * (m + 1) // 2) if growing else (count, (count, m))
    w = cupy.empty(shape, L.dtype)
    function = kernel(FACTORS, "last_rows", L.dtype, THREADS, growing)
    launch(function, -(-count * WARP // THREADS), THREADS, (L, w, m, count))
    return w
