"""Panels, blocks of one buffer and triangles, met entry by entry, on the GPU by kernels/skeletonization."""

import cupy
import numpy as np

from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, Ready, launch
from h2gpu.batched.device.plans import remembered

HEADER, TRIANGLES, PARTS, ALONG = (f"skeletonization/{name}.cuh" for name in ("changes", "triangles", "parts", "along"))
WARPS = 8  # of a block, each with a row


def along(a, which, axis, height=None):
    """See entries.along."""
    count, k = which.shape
    if axis == 1 and a.ndim == 3:
        m, n = a.shape[1:]
        return _picked("pick_rows", a, which, (count, k, n), (m, k))
    if axis == 1:
        return _picked("pick_columns", a, which, (count, k), (1, a.shape[1]))
    _, m, n = a.shape
    height = m if height is None else min(m, height)
    return _picked("pick_columns", a, which, (count, height, k), (height, n))


def _picked(name, a, which, shape, sizes):
    """One launch: as many lanes a row of the result as its length asks for, a power of two."""
    size = a.itemsize
    if a.strides[1:] != ((size,) if a.ndim == 2 else (size * a.shape[2], size)):
        a = cupy.ascontiguousarray(a)
    out = cupy.empty(shape, a.dtype)
    if out.size:
        length, rows = shape[-1], out.size // shape[-1]
        shift = (min(WARP, length) - 1).bit_length()
        function = kernel(ALONG, name, size, which.dtype == np.int64, WARPS)
        arguments = a, np.int64(a.strides[0] // size), cupy.ascontiguousarray(which), np.int64(rows)
        launch(function, -(-(rows << shift) // (WARPS * WARP)), WARPS * WARP, (*arguments, *sizes, length, shift, out))
    return out


def mask_panels(K, weights):
    """See entries.mask_panels."""
    height, columns = K.shape[1:]
    function = kernel(HEADER, "mask_panels", np.float64, WARPS)
    arguments = cupy.ascontiguousarray(weights), np.int64(weights.size), height, columns, K
    launch(function, -(-weights.size // WARPS), WARPS * WARP, arguments)


def add_blocks(K, buffer, base, step, slot, real):
    """See entries.add_blocks."""
    (cells, rows), (_, height, columns) = base.shape, K.shape
    tables = (cupy.ascontiguousarray(table) for table in (base, step, slot, real))
    _launch("add_blocks", base, cells * rows, (buffer, *tables), rows, height, columns, K)


def subtract_updates(buffer, U, base, step, which, slot):
    """See entries.subtract_updates."""
    cells, rows, neighbours = base.shape
    arrays = (cupy.ascontiguousarray(array) for array in (U, base, step, which, slot))
    _launch("subtract_updates", base, cells * rows, arrays, rows, neighbours, buffer)


def pack_triangles(L, first, orders, packed):
    """See entries.pack_triangles."""
    count, n, _ = L.shape
    _lines(TRIANGLES, "pack_triangles", count * n, n)(L, first, orders, behind=(packed,))


def unpack_triangles(packed, first, orders, which, L):
    """See entries.unpack_triangles."""
    count, n, _ = L.shape
    tables = first, orders, NULL if which is None else which
    _lines(TRIANGLES, "unpack_triangles", count * n, n)(packed, *tables, behind=(L,))


def unpack_parts(packed, offset, first, rows, columns, which, out):
    """See entries.unpack_parts."""
    count, m, n = out.shape
    tables = offset, first, rows, columns, NULL if which is None else which
    _lines(PARTS, "unpack_parts", count * m, m, n)(packed, *tables, behind=(out,))


@remembered
def _lines(header, name, lines, *sizes):
    """A launch, a warp a row of a stack."""
    function = kernel(header, name, np.float64, WARPS)
    return Ready(function, -(-lines // WARPS), WARPS * WARP, 0, (np.int64(lines), *sizes))


def _launch(name, base, lines, arrays, *sizes):
    """A warp a line."""
    function = kernel(HEADER, name, np.float64, base.dtype == np.int64, WARPS)
    launch(function, -(-lines // WARPS), WARPS * WARP, (*arrays, np.int64(lines), *sizes))
