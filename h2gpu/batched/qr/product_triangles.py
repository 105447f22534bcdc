"""W_bᵀ W_b = Σ_l P_lᵀ P_l on the GPU by one kernel, kernels/qr/product_triangles.cuh; by stacks beyond it."""

import cupy
import numpy as np

from h2gpu.arrays import moved
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import launch
from h2gpu.batched.qr.products import factor_stacks

BAND_THREADS, BAND = 32, 16  # a warp for each so many columns of W
EDGE = 64  # bound of the sides of F, S and W
TURNED, FULL = 1, 2  # of the kernel
LINK_BYTES, DOUBLE, INT, ALIGN = 32, 8, 4, 16
SPILL_BYTES = 600  # that the compiler may spill, nearly all outside the products


def triangles_of_products(products, out):
    """See h2gpu.batched.triangles_of_products."""
    most = max([out.bounds[1], *(side for kind in products for side in kind.F.bounds)])
    if most > EDGE:
        return factor_stacks(products, out)
    arrays, flags = zip(*(_fields(kind) for kind in products))
    lists = moved(np.array([[a.data.ptr for a in some] + [f] for some, f in zip(arrays, flags)], np.int64), cupy)
    out = out.resident
    shared = shared_bytes(EDGE, out.dtype)
    function = kernel("qr/product_triangles.cuh", "product_triangles", out.dtype, EDGE, shared_bytes=shared)
    arguments = lists, len(products), out.buffer, *map(out.number, range(3))
    launch(function, len(out), EDGE // BAND * BAND_THREADS, arguments, shared)


def _fields(kind):
    """A LinkList of the kernel: arrays on the device, and flags."""
    F, S = kind.F.resident, kind.S.resident
    flags = TURNED * kind.turned + FULL * (not kind.triangular)
    numbers = *map(F.number, range(3)), S.number(0)
    return (F.buffer, S.buffer, *numbers, moved(kind.first, cupy)), flags


def shared_bytes(edge, dtype):
    """Shared memory of a block: ProductMemory and LinkQueue of the kernel."""
    squares, sweep = 2 * edge**2 * DOUBLE, 3 * edge * DOUBLE + (edge + edge // BAND_THREADS) * INT
    preconditioner = (edge * (edge + 8) // 2 + 2 * edge) * DOUBLE + edge * INT if dtype == np.float64 else 0
    memory = squares + -(-sweep // ALIGN) * ALIGN + preconditioner
    return memory + edge // BAND * BAND_THREADS * LINK_BYTES
