"""Interpolation on the GPU by kernels/interpolation/chebyshev.cuh; factors are as in `chebyshev`."""

import cupy
import numpy as np

from h2gpu.batched.core.offsets import offsets_of
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, launch, upload
from h2gpu.h2matrix.interpolation import chebyshev

HEADER = "interpolation/chebyshev.cuh"
THREADS = 256
MOST_ENTRIES = 2**31 - 1  # of a product: places within it are int


def takes(x, entries):
    """Whether the kernels know numbers as x's, and matrices of so many entries."""
    return x.dtype in (np.float32, np.float64) and entries <= MOST_ENTRIES


def grids_like(x, boxes, order):
    """See chebyshev.grids_like."""
    along = chebyshev.axis_nodes(boxes, order)
    count, dim, _ = along.shape
    if not takes(x, order**dim):
        return chebyshev.grids_like(x, boxes, order)
    out = cupy.empty((count, order**dim, dim), x.dtype)
    along, points = cupy.asarray(along.astype(x.dtype, copy=False)), count * order**dim
    _launch("grids", points, along, np.int64(points), dim, order, order**dim, out)
    return out


def values_in_boxes(points, sizes, boxes, order):
    """See chebyshev.values_in_boxes."""
    if not takes(points, order ** points.shape[1]):
        return chebyshev.values_in_boxes(points, sizes, boxes, order)
    (first,) = upload(offsets_of(sizes))
    return _tensor_products(_polynomials(points[:, :, None], boxes, first, order))[:, 0]


def transfer_values(child_boxes, parent_boxes, order, parent_order, like):
    """See chebyshev.transfer_values."""
    x = chebyshev.axis_nodes(child_boxes, order)
    if not takes(like, (order * parent_order) ** x.shape[1]):
        return chebyshev.transfer_values(child_boxes, parent_boxes, order, parent_order, like)
    x = cupy.asarray(x.astype(like.dtype, copy=False))
    return _tensor_products(_polynomials(x, parent_boxes, NULL, parent_order))


def _polynomials(x, boxes, first, order):
    """Values of the polynomials of boxes at x (items, dim, each): (items, dim, each, order)."""
    dtype, (_, dim, each) = x.dtype, x.shape
    lower, upper = cupy.asarray(np.stack([boxes.lower, boxes.upper]).astype(dtype, copy=False))
    numbers = cupy.asarray(np.stack([chebyshev.nodes(order), chebyshev.weights(order)]).astype(dtype))
    out, x = cupy.empty((*x.shape, order), dtype), cupy.ascontiguousarray(x)
    _launch(
        "polynomials", x.size, x, lower, upper, first, *numbers, np.int64(x.size), dim, each, len(boxes), order, out
    )
    return out


def _tensor_products(F):
    """Products of factors (items, dim, rows, columns): (items, rows^dim, columns^dim)."""
    count, dim, rows, columns = F.shape
    out, width = cupy.empty((count, rows**dim, columns**dim), F.dtype), columns**dim
    _launch("tensor_products", out.size, F, np.int64(out.size), dim, rows, columns, rows**dim * width, width, out)
    return out


def _launch(name, count, first, *arguments):
    """A thread each of `count` results."""
    launch(kernel(HEADER, name, first.dtype), -(-count // THREADS), THREADS, (first, *arguments))
