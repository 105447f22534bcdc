"""LU of matrices up to 32 × 32 in registers, a warp or a part of one a matrix: kernels/systems/lu_register.cuh."""

import numpy as np

from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import WARP, Ready

REGISTER_WARPS = 2  # of a block of method "matrix"
LEAST_LANES = 4


def lanes_of(m):
    """The power of two that m rows need."""
    return np.maximum(LEAST_LANES, 2 ** np.ceil(np.log2(np.maximum(m, 1))).astype(np.int64))


def register_bytes(dtype, columns):
    """Shared memory of a block of lu_register: a row a lane."""
    return REGISTER_WARPS * WARP * (columns | 1) * dtype.itemsize


def ready(dtype, batch, m, n):
    """The launch for a batch of m × n matrices, or of none larger."""
    lanes, columns = int(lanes_of(np.array([m]))[0]), n + n % 2
    shared = register_bytes(dtype, columns)
    instance = dtype, columns, lanes, REGISTER_WARPS
    function = kernel("systems/lu_register.cuh", "lu_register", *instance, shared_bytes=shared)
    blocks = -(-batch // (REGISTER_WARPS * WARP // lanes))
    return Ready(function, blocks, REGISTER_WARPS * WARP, shared, (m, n, np.int64(batch)))
