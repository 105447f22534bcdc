"""out_b = A_b B_b C_bᵀ on the GPU by one kernel, kernels/products/triple_product.cuh, or by two products beyond it."""

import cupy
import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch, ResidentBatch
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import WARP, launch, tiling, upload
from h2gpu.batched.products.gemm import gemm

WARP_ROWS, STRIP = 16, 8  # of the kernel
B_PADDING, C_PADDING = 16, 64  # of the kernel: bytes
EDGES = (16, 32, 48, 64)  # bounds of the rows of tiles of out, and the largest of their columns
INNER = (32, 64, 96, 128)  # bounds of B's sides
SHARED_BYTES = 160 << 10  # of a block, at most: beyond, two products are as fast


def triple_product(A, B, C, out):
    """See h2gpu.batched.triple_product."""
    if out is None:
        out = MatrixBatch.empty(A.rows, C.rows, A.dtype, cupy, (A.bounds[0], C.bounds[0]))
    inner = next((edge for edge in INNER if max(B.bounds) <= edge), None)
    tile = tuple(_side(bound) for bound in out.bounds)
    shared = 0 if inner is None else shared_bytes(A.dtype, tile[1], inner)
    if inner is None or shared > SHARED_BYTES:
        return gemm(gemm(A, B, None, 1, 0, False, False, None), C, None, 1, 0, False, True, out)
    batches = [A, B, C, out]
    if any(isinstance(M, ResidentBatch) for M in batches):
        A, B, C, out = batches = [M.resident for M in batches]
    table = upload(*(M.offsets for M in batches), A.rows, B.rows, B.columns, C.rows)
    tiles = tiling(out, tile)
    rows = next(edge for edge in EDGES if tile[0] <= edge)
    function = kernel("products/triple_product.cuh", "triple_product", A.dtype, rows, inner, shared_bytes=shared)
    buffers = (M.buffer for M in batches)
    arguments = *buffers, table, np.int64(len(A)), *tile, *tiles.arguments
    launch(function, tiles.blocks, rows // WARP_ROWS * WARP, arguments, shared)
    return out


def _side(bound):
    """Rows or columns of a tile, whole strips: all of them, or even pieces."""
    pieces = max(1, -(-bound // EDGES[-1]))
    return max(1, -(-bound // (STRIP * pieces))) * STRIP


def shared_bytes(dtype, breadth, inner):
    """Shared memory of a block."""
    row = inner * np.dtype(dtype).itemsize
    return inner * (row + B_PADDING) + breadth * (row + C_PADDING)
