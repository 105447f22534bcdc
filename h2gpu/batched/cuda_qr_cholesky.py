"""P_b (I + F_b)⁻¹ R_b = A_b on the GPU by Cholesky factors of Gram matrices: kernels/batched/cholesky_qr.cuh.

Of stacks alone. Other shapes, and all that gain nothing, go by Householder reflections.
"""

import cupy
import numpy as np

from h2gpu.batched.cuda_qr import qr
from h2gpu.batched.cuda_svd_choice import fits
from h2gpu.batched.launch import NULL, WARP, launch
from h2gpu.batched.modules import kernel

STRIP, STEP, TILE_ROWS = 8, 4, 16  # of the kernel: columns of a strip, entries between columns of G, rows of a warp
WARPS = {5: 4, 6: 4, 7: 4, 8: 4, 9: 6}  # of a block, by strips
TALL = 2  # rows for each column, at least


def cholesky_qr(A):
    """See h2gpu.batched.cholesky_qr."""
    batch, m, n = A.shape
    strips = -(-n // STRIP)
    divides = fits(cupy.cuda.runtime.getDevice(), A.dtype, n, True)  # who takes F
    if strips not in WARPS or n % 2 or m < TALL * n or not batch or not divides:
        return *qr(A, "reduced"), None
    A = cupy.ascontiguousarray(A)
    P, R = cupy.empty_like(A), cupy.empty((batch, n, n), A.dtype)
    F = cupy.empty_like(R) if A.dtype == np.float64 else None
    shared = shared_bytes(strips)
    function = kernel("batched/cholesky_qr.cuh", "cholesky_qr", A.dtype, strips, WARPS[strips], shared_bytes=shared)
    launch(function, batch, WARPS[strips] * WARP, (A, P, R, NULL if F is None else F, m, n), shared)
    return P, R, F


def shared_bytes(strips):
    """Shared memory of a block: the kernel's QRMemory."""
    warps, columns = WARPS[strips], -(-strips // 2) * 2 * STRIP
    slab = max(strips * STRIP * warps * TILE_ROWS, columns * (columns + STEP))
    return 8 * (slab + strips * (strips + 1) // 2 * STRIP**2 + columns + warps)
