"""out_b = op(A_b) B_b on the GPU for B of few columns: kernels/batched/thin_product.cuh, one tile for all columns.

Turned, B and out lie transposed: out_bᵀ = A_b B_bᵀ. Short: entries of B have no more than 11 bits, as `gaussian` makes
them in float32.
"""

from functools import cache

import cupy
import numpy as np

from h2gpu.batched.launch import launch
from h2gpu.batched.modules import kernel

STEP, ROWS, THREADS = 8, 128, 128  # of the kernel: inner indices of a product, rows of a block
STAGES = {4: 4, 8: 3}  # of the kernel: slabs in shared memory, by the bytes of an entry
PIECE, LINE = 16, 128  # bytes of a copy, of all banks and of a slab's inner indices
STRIPS = (5, 6, 7, 8, 9)  # of eight columns
LEAST_INNER, LEAST_BLOCKS = 64, 264  # below, others are as fast
RESIDENT, FEW = (
    2,
    4,
)  # blocks of a multiprocessor; tiles beyond the last full round are few, times this, among all blocks


def suits(A, B, transa, turned=False):
    """Whether the kernel can multiply two stacks, and is the fastest; not both transa and turned."""
    (m, k), n, each = _sizes(A, transa), B.shape[1 if turned else 2], PIECE // A.dtype.itemsize
    pieces = all(size % each == 0 for size in ((m if transa else k), n)) and (A.data.ptr | B.data.ptr) % PIECE == 0
    large = k >= LEAST_INNER and m >= ROWS and len(A) * m >= LEAST_BLOCKS * ROWS
    return pieces and large and -(-n // STEP) in STRIPS


def _sizes(A, transa):
    """Rows and inner indices."""
    return A.shape[:0:-1] if transa else A.shape[1:]


def thin_product(A, B, transa, out, turned=False, short=False):
    """The products, all contiguous; out: where to, or None."""
    batch, (m, k), n = len(A), _sizes(A, transa), B.shape[1 if turned else 2]
    if out is None:
        out = cupy.empty((batch, n, m) if turned else (batch, m, n), A.dtype)
    strips, each, transa = -(-n // STEP), -(-m // ROWS), bool(transa)
    shared = shared_bytes(A.dtype, strips, transa, turned)
    instance = A.dtype, strips, transa, turned, short and A.dtype == np.float32
    function = kernel("batched/thin_product.cuh", "thin_product", *instance, shared_bytes=shared)
    tiles, whole = batch * each, whole_tiles(batch * each)
    arguments = (A, B, out, each, whole, m, n, k, B.shape[2], np.int64(k * n))
    launch(function, 2 * tiles - whole, THREADS, arguments, shared)
    return out


def whole_tiles(tiles):
    """How many tiles have a block each: the last few, with the device to themselves, are shared by two."""
    places = _places(cupy.cuda.runtime.getDevice())
    return tiles - tiles % places if FEW * (tiles % places) <= places < tiles else tiles


@cache
def _places(device):
    return RESIDENT * cupy.cuda.Device(device).attributes["MultiProcessorCount"]


def shared_bytes(dtype, strips, transa, turned):
    """Shared memory of a block: the kernel's stages."""
    size = np.dtype(dtype).itemsize
    slab = lines = LINE // size
    pitch = strips * STEP
    if turned:
        pitch, lines = slab + STEP, strips * STEP
    while not turned and (1 if transa else 2) * pitch * size % (LINE // 2) != LINE // 4:
        pitch += PIECE // size
    return STAGES[size] * (slab * (ROWS * size + (LINE // 4 if transa else 0)) + lines * pitch * size)
