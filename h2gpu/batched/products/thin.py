"""out_b = op(A_b) B_b on the GPU for B of few columns: kernels/products/thin_product.cuh, of float32 thin_parts.cuh.

Turned, B and out lie transposed: out_bᵀ = A_b B_bᵀ. Short: entries of B have no more than 11 bits, as `gaussian` makes
them in float32.
"""

from functools import cache

import cupy
import numpy as np

from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import Ready
from h2gpu.batched.device.limits import most_shared, multiprocessors
from h2gpu.batched.device.plans import remembered

STEP, ROWS, THREADS = 8, 128, 128  # of the kernel: inner indices of a product, rows of a block
STAGES, STAGES_OF_PARTS, SHORT_STAGES = 3, 4, 3  # of the kernels: slabs in shared memory
FINE, COARSE, SHORT = 0, 1, 2  # ways to take B apart, of the kernel: the second is enough for sums this long:
LONG = 256
SPILL_BYTES = 160  # of parts, on any device
PIECE, LINE = 16, 128  # bytes of a copy, of all banks and of a slab's inner indices
STRIPS = (5, 6, 7, 8, 9)  # of eight columns
LEAST_INNER, LEAST_BLOCKS = 64, 264  # below, others are as fast
RESIDENT = 2  # blocks of a multiprocessor
FEW = 4  # tiles beyond the last full round are few, times this, among all blocks


def aligned(A, B):
    """Whether both begin where a copy can."""
    return (A.data.ptr | B.data.ptr) % PIECE == 0


def suits_sizes(dtype, sizes, transa=False):
    """Whether the kernel can multiply two stacks that are `aligned`, and is the fastest; sizes (batch, m, k, n)."""
    (batch, m, k, n), each = sizes, PIECE // dtype.itemsize
    large = k >= LEAST_INNER and m >= ROWS and batch * m >= LEAST_BLOCKS * ROWS
    if not large or (m if transa else k) % each or n % each:
        return False
    return -(-n // STEP) in _strips(most_shared(cupy.cuda.runtime.getDevice()))


@cache
def _strips(most):
    """Those of STRIPS whose shared memory a block can have."""
    return [strips for strips in STRIPS if parts_bytes(strips, FINE) <= most]


def _sizes(A, transa):
    """Rows and inner indices."""
    return A.shape[:0:-1] if transa else A.shape[1:]


def thin_product(A, B, transa, out, turned=False, short=False):
    """The products, all contiguous; out: where to, or None."""
    (m, k), n = _sizes(A, transa), B.shape[1 if turned else 2]
    sizes, shape = (len(A), m, k, n), (len(A), n, m) if turned else (len(A), m, n)
    return multiply(A, B, sizes, shape, out, bool(transa), turned, short)


def multiply(A, B, sizes, shape, out=None, transa=False, turned=False, short=False):
    """Products of `sizes` (batch, m, k, n) by arrays whose entries lie so, as an array of `shape` or in `out`."""
    out = cupy.empty(shape, A.dtype) if out is None else out
    _ready(A.dtype, sizes, transa, turned, short)(A, B, out)
    return out


@remembered
def _ready(dtype, sizes, transa, turned, short):
    """The launch for products of one shape."""
    batch, m, k, n = sizes
    strips, each = -(-n // STEP), -(-m // ROWS)
    if dtype == np.float32:
        parts = SHORT if short else COARSE if k >= LONG else FINE
        name, instance, shared = "thin_parts", (strips, transa, turned, parts), parts_bytes(strips, parts)
    else:
        name, instance = "thin_product", (dtype, strips, transa, turned)
        shared = shared_bytes(strips, transa, turned)
    function = kernel(f"products/{name}.cuh", name, *instance, shared_bytes=shared)
    whole = whole_tiles(batch * each)
    numbers = *np.array([each, whole, m, n, k, k if turned else n], np.int32), np.int64(k * n)
    return Ready(function, 2 * batch * each - whole, THREADS, shared, numbers)


def whole_tiles(tiles):
    """How many tiles have a block each: the last few, with the device to themselves, are shared by two."""
    places = _places(cupy.cuda.runtime.getDevice())
    return tiles - tiles % places if FEW * (tiles % places) <= places < tiles else tiles


@cache
def _places(device):
    return RESIDENT * multiprocessors(device)


def shared_bytes(strips, transa, turned):
    """Shared memory of a block of thin_product: its stages."""
    size = np.dtype(np.float64).itemsize
    slab = lines = LINE // size
    pitch = strips * STEP
    if turned:
        pitch, lines = slab + STEP, strips * STEP
    while not turned and (1 if transa else 2) * pitch * size % (LINE // 2) != LINE // 4:
        pitch += PIECE // size
    return STAGES * (slab * (ROWS * size + (LINE // 4 if transa else 0)) + lines * pitch * size)


def parts_bytes(strips, parts):
    """Of thin_parts: its stages, of A and of B, SHORT, or two slabs of B, two entries in a piece."""
    size, width = np.dtype(np.float32).itemsize, strips * STEP
    slab = LINE // size
    if parts == SHORT:
        pitch = width if width % (2 * STEP) else width + STEP
        return SHORT_STAGES * (ROWS * LINE + slab * pitch * size)
    return STAGES_OF_PARTS * ROWS * LINE + slab * width * PIECE
