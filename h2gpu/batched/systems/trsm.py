"""Triangular systems with many right-hand sides on the GPU: kernels/systems/trsm.cuh."""

import cupy
import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, Ready, addresses
from h2gpu.batched.device.limits import FEW_RESERVED_BYTES, shared_limit
from h2gpu.batched.device.plans import remembered
from h2gpu.batched.products.vectors import bounds_of, check_shared, knobs_of

TRSM_EDGE, TRSM_FEW = 32, 4  # of a tile; right-hand sides of a block where more do not fit
SPILL_BYTES = 24  # at most, by ptxas


def trsm(A, B, alpha, side, lower, trans, unit):
    """See h2gpu.batched.trsm."""
    right, n = side == "right", bounds_of(A)[0]
    width = bounds_of(B)[0 if right else 1]
    if isinstance(A, MatrixBatch):
        A, B = A.on_host(), B.on_host()
        X = MatrixBatch.empty(B.rows, B.columns, B.dtype, cupy)
        places = A.offsets, B.offsets, B.offsets, X.offsets, A.rows, B.rows if right else B.columns
        table = cupy.asarray(np.stack(places))
    else:
        X, table = cupy.empty(B.shape, B.dtype), NULL
    ready = _plan(A.dtype, len(A), n, width, right, bool(lower), bool(trans), bool(unit))
    ready(*addresses(A, B, X), table, behind=(A.dtype.type(alpha),))
    return X


@remembered
def _plan(dtype, batch, n, width, right, lower, trans, unit):
    """The launch for triangles of order n, or of none larger, with so many right-hand sides."""
    row = knobs_of("trsm", dtype, columns=width)
    if trsm_bytes(dtype, n, row["columns"]) > shared_limit(cupy.cuda.Device().id, FEW_RESERVED_BYTES):
        row = knobs_of("trsm", dtype, columns=TRSM_FEW)
    columns, warps = row["columns"], row["warps"]
    shared, pieces = trsm_bytes(dtype, n, columns), -(-width // columns)
    check_shared("trsm", shared, n)
    function = kernel("systems/trsm.cuh", "trsm", dtype, columns, warps, right, lower, trans, unit, shared_bytes=shared)
    return Ready(function, batch * pieces if n else 0, warps * WARP, shared, (np.int64(batch), n, width, pieces))


def trsm_bytes(dtype, n, columns):
    return ((n + TRSM_EDGE) * columns + 2 * TRSM_EDGE * (TRSM_EDGE + 1)) * dtype.itemsize
