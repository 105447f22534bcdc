"""Interpolation on the GPU by kernels/interpolation/chebyshev.cuh; factors are as in `chebyshev`."""

import itertools
from functools import lru_cache

import cupy
import numpy as np

from h2gpu.arrays import moved, moved_together
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.batched.device.compiler import NAMES, kernel
from h2gpu.batched.device.launch import NULL, WARP, launch
from h2gpu.covariance.pairs.cuda import numbers_of
from h2gpu.h2matrix.interpolation import chebyshev

HEADER = "interpolation/chebyshev.cuh"
THREADS = 256
SAMPLED, SAMPLED_WARPS = (6, 3), 4  # rows and columns of entries of a sampled block, at most; warps of a block
ORDERS_AT_ONCE = 11  # of samples: 2 to 12, as an rtol of 1e-7 takes in two dimensions; 2 to 20 are four times the work
SPILL_BYTES = 64  # of sampled_errors, that the compiler may spill: seen 20
SAMPLED_SIZES = np.dtype([("numbers", np.int32, 7)])  # struct SampledSizes
MOST_ENTRIES = 2**31 - 1  # of a product: places within it are int


def takes(x, entries):
    """Whether the kernels know numbers as x's, and matrices of so many entries."""
    return x.dtype in (np.float32, np.float64) and entries <= MOST_ENTRIES


def grids_like(x, boxes, order):
    """See chebyshev.grids_like."""
    count, dim = boxes.lower.shape
    if not takes(x, order**dim):
        return chebyshev.grids_like(x, boxes, order)
    out, points = cupy.empty((count, order**dim, dim), x.dtype), count * order**dim
    _launch("grids", points, _axis_nodes(boxes, order, x.dtype), np.int64(points), dim, order, order**dim, out)
    return out


def values_in_boxes(points, sizes, boxes, order):
    """See chebyshev.values_in_boxes."""
    if not takes(points, order ** points.shape[1]):
        return chebyshev.values_in_boxes(points, sizes, boxes, order)
    first, numbers = moved_together(cupy, offsets_of(sizes), _numbers(boxes, order, points.dtype))
    return _tensor_products(_polynomials(points[:, :, None], len(boxes), first, numbers, order))[:, 0]


def transfer_values(child_boxes, parent_boxes, order, parent_order, like):
    """See chebyshev.transfer_values."""
    if not takes(like, (order * parent_order) ** child_boxes.lower.shape[1]):
        return chebyshev.transfer_values(child_boxes, parent_boxes, order, parent_order, like)
    x = _axis_nodes(child_boxes, order, like.dtype)
    numbers = moved(_numbers(parent_boxes, parent_order, like.dtype), cupy)
    return _tensor_products(_polynomials(x, len(parent_boxes), NULL, numbers, parent_order))


def orders_together(samples, order, largest):
    """See chebyshev.orders_together: ORDERS_AT_ONCE, where the kernel knows the function."""
    count = min(ORDERS_AT_ONCE, largest + 1 - order) if samples.known is not None else 1
    return range(order, order + max(count, 1))


def mean_squares(samples, orders):
    """See chebyshev.mean_squares: on the host where no kernel knows the function, else nothing is waited for.

    The kernel evaluates the entries too, and finds those that are tried again among the blocks': 1.0 MB are packed and
    copied at 2^17 sites, not 1.8.
    """
    (blocks, rows, dim), columns, known = samples.x.shape, samples.y.shape[1], samples.known
    if known is None or rows > SAMPLED[0] or columns > SAMPLED[1] or not blocks:
        return chebyshev.mean_squares(samples, orders)
    most, warps, dtype = max(orders), SAMPLED_WARPS, samples.x.dtype
    sizes = np.array([blocks, len(samples.block), rows, columns, orders[0], len(orders), most], np.int32)
    whole = [part.astype(np.int64, copy=False).view(dtype) for part in (samples.points, samples.block)]
    numbers = [*whole, samples.boxes.lower, samples.boxes.upper, samples.x, samples.y, *_rules(orders)]
    packed = moved(np.concatenate([part.ravel() for part in numbers], dtype=dtype), cupy)  # bits of whole ones too
    ends = np.cumsum([0] + [part.size for part in numbers]).tolist()
    points, block, *given = (packed[i:j] for i, j in itertools.pairwise(ends))
    whole = points.view(np.int64), block.view(np.int64) if block.size else NULL
    out, shared = cupy.empty((len(orders), len(samples.points))), warps * (SAMPLED[0] + 1) * dim * most * dtype.itemsize
    compiled = kernel(
        "interpolation/sampled_errors.cuh",
        f"sampled_errors<{NAMES[dtype]}, {warps}, {SAMPLED[0]}, {SAMPLED[1]}, {known.type}>",
        shared_bytes=shared,
        definitions=known.definitions,
    )
    arguments = *whole, *given, sizes.view(SAMPLED_SIZES)[0], out, *numbers_of(known)
    launch(compiled, -(-out.size // warps), warps * WARP, arguments, shared)
    return out


@lru_cache(maxsize=64)
def _rules(orders):
    """Nodes and weights of a range of orders, (2, orders, the largest), zeros beyond each."""
    tables = np.zeros((2, len(orders), max(orders)))
    for table, order in zip(tables.transpose(1, 0, 2), orders):
        table[:, :order] = chebyshev.nodes(order), chebyshev.weights(order)
    return tables


def _axis_nodes(boxes, order, dtype):
    """See chebyshev.axis_nodes, to the last bit; `order` times as many numbers as are sent."""
    centre, half, nodes = (boxes.lower + boxes.upper) / 2, boxes.sides / 2, chebyshev.nodes(order)
    centre, half, nodes = moved_together(cupy, centre, half, nodes)
    return (centre[..., None] + half[..., None] * nodes).astype(dtype, copy=False)


def _numbers(boxes, order, dtype):
    """What polynomials depend on, one behind the other: corners of the boxes, nodes and weights."""
    parts = boxes.lower, boxes.upper, chebyshev.nodes(order), chebyshev.weights(order)
    return np.concatenate([part.ravel() for part in parts]).astype(dtype, copy=False)


def _polynomials(x, boxes, first, numbers, order):
    """Values of the polynomials of so many boxes at x (items, dim, each): (items, dim, each, order)."""
    _, dim, each = x.shape
    corners, size = numbers[: 2 * boxes * dim].reshape(2, -1), np.int64(x.size)
    out, x = cupy.empty((*x.shape, order), x.dtype), cupy.ascontiguousarray(x)
    numbers = *corners, first, *numbers[2 * boxes * dim :].reshape(2, -1)
    _launch("polynomials", x.size, x, *numbers, size, dim, each, boxes, order, out)
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
