"""Triangular systems with many right-hand sides on the GPU: kernels/systems/trsm.cuh."""

import cupy
import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, addresses, launch
from h2gpu.batched.device.limits import FEW_RESERVED_BYTES, shared_limit
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
        X, table = cupy.empty_like(B), NULL
    row = knobs_of("trsm", A.dtype, columns=width)
    if trsm_bytes(A.dtype, n, row["columns"]) > shared_limit(cupy.cuda.Device().id, FEW_RESERVED_BYTES):
        row = knobs_of("trsm", A.dtype, columns=TRSM_FEW)
    columns, warps = row["columns"], row["warps"]
    shared, pieces = trsm_bytes(A.dtype, n, columns), -(-width // columns)
    check_shared("trsm", shared, n)
    instance = A.dtype, columns, warps, right, bool(lower), bool(trans), bool(unit)
    function = kernel("systems/trsm.cuh", "trsm", *instance, shared_bytes=shared)
    arguments = *addresses(A, B, X), table, np.int64(len(A)), n, width, pieces, A.dtype.type(alpha)
    launch(function, len(A) * pieces if n else 0, warps * WARP, arguments, shared)
    return X


def trsm_bytes(dtype, n, columns):
    return ((n + TRSM_EDGE) * columns + 2 * TRSM_EDGE * (TRSM_EDGE + 1)) * dtype.itemsize
