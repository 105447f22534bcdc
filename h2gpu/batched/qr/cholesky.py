"""P_b (I + F_b)⁻¹ R_b = A_b on the GPU by Cholesky factors of Gram matrices: kernels/qr/cholesky_qr.cuh.

Of stacks alone. Other shapes, and all that gain nothing, go by Householder reflections; so do bases in float64, of
which a Gram matrix does not tell enough.
"""

import cupy
import numpy as np

from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import WARP, Ready, addresses
from h2gpu.batched.device.plans import remembered
from h2gpu.batched.qr.householder import qr

STRIP, STEP, TILE_ROWS = 8, 4, 16  # of the kernel: columns of a strip, entries between columns of G, rows of a warp
WARPS = {5: 4, 6: 4, 7: 4, 8: 4, 9: 6}  # of a block, by strips
TALL = 2  # rows for each column, at least


def cholesky_qr(A, before=None):
    """See h2gpu.batched.cholesky_qr."""
    batch, _, n = A.shape
    ready = _ready("cholesky_qr", A.dtype, A.shape)
    if ready is None:
        P, R = qr(A, "reduced")
        return P, R if before is None else cupy.matmul(R, before), None
    P, R = cupy.empty(A.shape, A.dtype), cupy.empty((batch, n, n), A.dtype)
    F = cupy.empty((batch, n, n), A.dtype) if A.dtype == np.float64 else None
    ready(cupy.ascontiguousarray(A), P, R, *addresses(before, F))
    return P, R, F


def cholesky_basis(A):
    """See h2gpu.batched.cpu.cholesky_basis."""
    ready = None
    if A.dtype == np.float32:
        ready = _ready("cholesky_basis", A.dtype, A.shape)
    if ready is None:
        return qr(A, "reduced")[0], None
    batch, _, n = A.shape
    Q, X = cupy.empty(A.shape, A.dtype), cupy.empty((batch, n, n), A.dtype)
    ready(cupy.ascontiguousarray(A), Q, X)
    return Q, X


@remembered
def _ready(name, dtype, shape):
    """The launch for stacks of a shape; None where reflections are asked."""
    batch, m, n = shape
    strips = -(-n // STRIP)
    if strips not in WARPS or n % 2 or m < TALL * n or not batch:
        return None
    shared, warps = shared_bytes(strips), WARPS[strips]
    function = kernel("qr/cholesky_qr.cuh", name, dtype, strips, warps, shared_bytes=shared)
    return Ready(function, batch, warps * WARP, shared, (np.int32(m), np.int32(n)))


def shared_bytes(strips):
    """Shared memory of a block: the kernel's QRMemory."""
    warps, columns = WARPS[strips], -(-strips // 2) * 2 * STRIP
    slab = max(strips * STRIP * warps * TILE_ROWS, columns * (columns + STEP))
    return 8 * (slab + strips * (strips + 1) // 2 * STRIP**2 + columns + warps)
