"""How many singular values each matrix keeps on the GPU, when all share what may be discarded.

Squares are sorted, one thread block finds where their sums exceed the allowance: kernels/svd/shared_ranks.cuh.
"""

import cupy
import numpy as np

from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import WARP, launch

THREADS = 128  # of a block that counts


def shared_ranks(sigma, allowance):
    """See h2gpu.batched.shared_ranks."""
    sigma, (batch, values) = cupy.ascontiguousarray(sigma), sigma.shape
    squares = cupy.square(sigma, dtype=np.float64).ravel()
    squares.sort()
    threshold, ranks = cupy.empty(1), cupy.empty(batch, np.int64)
    function = kernel("svd/shared_ranks.cuh", "discard_threshold")
    allowed = cupy.asarray(allowance, np.float64)
    launch(function, 1, WARP**2, (squares, np.int64(squares.size), allowed, threshold))
    function = kernel("svd/shared_ranks.cuh", "kept_ranks", sigma.dtype)
    launch(function, -(-batch // THREADS), THREADS, (sigma, np.int64(batch), values, threshold, ranks))
    return ranks


def discarded(sigma, ranks):
    """See h2gpu.batched.discarded."""
    sigma, ranks, total = cupy.ascontiguousarray(sigma), cupy.asarray(ranks, np.int64), cupy.empty(())
    function = kernel("svd/shared_ranks.cuh", "discarded_squares", sigma.dtype)
    values = max(1, sigma.shape[1])
    launch(function, 1, WARP**2, (sigma, np.int64(sigma.size), values, ranks, total))
    return total
