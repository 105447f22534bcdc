"""Small problems in registers on the GPU: kernels/registers/small_thread.cuh and small_block.cuh."""

import cupy
import numpy as np

from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import WARP, launch
from h2gpu.batched.registers.layouts import THREAD, layout

THREAD_HEADER, BLOCK_HEADER = "registers/small_thread.cuh", "registers/small_block.cuh"
WARPS = 4  # of a thread block where each thread has a problem


def lu(A, name):
    """See h2gpu.batched.registers.lu."""
    LU, info = cupy.empty_like(A), _info(A)
    _run("lu", A, A.shape[-1], name, A.shape[-1:], (A, LU, info))
    return LU, info


def cholesky(A, name):
    """See h2gpu.batched.registers.cholesky."""
    L, info = cupy.empty_like(A), _info(A)
    _run("cholesky", A, A.shape[-1], "thread" if name == "auto" else name, A.shape[-1:], (A, L, info))
    return L, info


def solve(A, b, jordan, name):
    """See h2gpu.batched.registers.solve."""
    n, k = b.shape[1:]
    X, info = cupy.empty_like(b), _info(A)
    _run("solve", A, n + k, name, (n, k, bool(jordan)), (A, b, X, info))
    return X, info


def qr(A, name):
    """See h2gpu.batched.registers.qr."""
    batch, m, n = A.shape
    QR, tau, info = cupy.empty_like(A), cupy.empty((batch, min(m, n)), A.dtype), _info(A)
    _run("qr", A, n, name, (m, n), (A, QR, tau, info))
    return QR, tau, info


def least_squares(A, b, name):
    """See h2gpu.batched.registers.least_squares."""
    (batch, m, n), k = A.shape, b.shape[-1]
    X, condition = cupy.empty((batch, n, k), A.dtype), cupy.empty(batch, A.real.dtype)
    _run("least_squares", A, n + k, name, (m, n, k), (A, b, X, condition))
    return X, condition


def fits(A, columns):
    """Whether problems of A with so many columns beside it fit into registers."""
    return layout(A.dtype, A.shape[-2], A.shape[-1] + columns) is not None


def _info(A):
    return cupy.empty(len(A), np.int32)


def _run(routine, A, width, name, sizes, arguments):
    """Launch a routine for problems of A with `width` columns in all; of empty ones fill the last argument only."""
    if 0 in arguments[0].shape or arguments[1].size == 0:
        arguments[-1].fill(0)  # info, or bounds; kernels write all of them, which saves a launch
        return
    chosen = layout(A.dtype, A.shape[1], width, name)
    if chosen is None or (routine == "cholesky" and chosen is not THREAD):
        raise ValueError(
            f"{routine}: expected problems that fit into registers by layout {name!r}, got {A.shape[1]} × {width} of "
            f"{A.dtype}; use the functions of h2gpu.batched"
        )
    if chosen is THREAD:
        function = kernel(THREAD_HEADER, f"thread_{routine}", A.dtype, *sizes, WARPS)
        launch(function, -(-len(A) // (WARPS * WARP)), WARPS * WARP, (*arguments, np.int64(len(A))))
    else:
        function = kernel(BLOCK_HEADER, f"block_{routine}", A.dtype, *sizes, *chosen)
        launch(function, len(A), chosen.threads, arguments)
