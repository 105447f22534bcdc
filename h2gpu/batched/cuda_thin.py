"""out_b = op(A_b) B_b on the GPU for B of few columns: kernels/batched/thin_product.cuh, one tile for all columns."""

import cupy
import numpy as np

from h2gpu.batched.launch import launch
from h2gpu.batched.modules import kernel

STEP, SLAB, STAGES, ROWS, THREADS = 8, 16, 3, 128, 128  # of the kernel: inner indices, slabs in flight, rows of a block
PIECE, LINE = 16, 128  # bytes of a copy, of all banks
STRIPS = (5, 6, 7, 8, 9)  # of eight columns
LEAST_INNER, LEAST_BLOCKS = 64, 264  # below, others are as fast


def suits(A, B, transa):
    """Whether the kernel can multiply two stacks, op(A_b) B_b, and is the fastest."""
    (_, m, k), n, each = (A.swapaxes(1, 2) if transa else A).shape, B.shape[2], PIECE // A.dtype.itemsize
    pieces = all(size % each == 0 for size in ((m if transa else k), n)) and (A.data.ptr | B.data.ptr) % PIECE == 0
    large = k >= LEAST_INNER and m >= ROWS and len(A) * m >= LEAST_BLOCKS * ROWS
    return pieces and large and -(-n // STEP) in STRIPS


def thin_product(A, B, transa, out):
    """op(A_b) B_b, all contiguous; out: where to, or None."""
    (batch, m, k), n = (A.swapaxes(1, 2) if transa else A).shape, B.shape[2]
    out, strips, each = cupy.empty((batch, m, n), A.dtype) if out is None else out, -(-n // STEP), -(-m // ROWS)
    shared = shared_bytes(A.dtype, strips, transa)
    function = kernel("batched/thin_product.cuh", "thin_product", A.dtype, strips, bool(transa), shared_bytes=shared)
    launch(function, batch * each, THREADS, (A, B, out, each, m, n, k, n, np.int64(k * n)), shared)
    return out


def shared_bytes(dtype, strips, transa):
    """Shared memory of a block: the kernel's stages."""
    size, pitch = np.dtype(dtype).itemsize, strips * STEP
    while (1 if transa else 2) * pitch * size % (LINE // 2) != LINE // 4:
        pitch += PIECE // size
    return STAGES * SLAB * (ROWS * size + (LINE // 4 if transa else 0) + pitch * size)
