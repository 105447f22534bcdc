"""Q_b R_b = A_b on the GPU by Cholesky factors of Gram matrices, of stacks alone: kernels/batched/cholesky_qr.cuh.

Other shapes, and all that gain nothing, go by Householder reflections.
"""

import cupy

from h2gpu.batched.cuda_qr import qr
from h2gpu.batched.launch import WARP, launch
from h2gpu.batched.modules import kernel

STRIP, WARPS, TILE_ROWS = 8, 6, 16  # of the kernel: columns of a strip, warps of a block, rows of a warp
PAD = 4  # entries between its columns that are left out
STRIPS = (5, 6, 7, 8, 9)
TALL = 2  # rows for each column, at least


def cholesky_qr(A):
    """See h2gpu.batched.cholesky_qr."""
    batch, m, n = A.shape
    strips = -(-n // STRIP)
    if strips not in STRIPS or n % 2 or m < TALL * n or not batch:
        return qr(A, "reduced")
    A = cupy.ascontiguousarray(A)
    Q, R = cupy.empty_like(A), cupy.empty((batch, n, n), A.dtype)
    shared = shared_bytes(strips)
    function = kernel("batched/cholesky_qr.cuh", "cholesky_qr", A.dtype, strips, shared_bytes=shared)
    launch(function, batch, WARPS * WARP, (A, Q, R, m, n), shared)
    return Q, R


def shared_bytes(strips):
    """Shared memory of a block: the kernel's QRMemory."""
    slab = strips * STRIP * (WARPS * TILE_ROWS + PAD)
    return 8 * (slab + strips * (strips + 1) // 2 * STRIP**2 + -(-strips // 2) * 2 * STRIP + WARPS)
