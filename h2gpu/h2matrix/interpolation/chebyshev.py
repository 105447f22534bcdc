"""Chebyshev interpolation on the boxes of a cluster tree.

    f(x) ≈ Σ_ν L_ν(x) f(ξ_ν),   L_ν(x) = Π_j ℓ_{ν_j}(x_j)   on the tensor grid of `order` Chebyshev points a direction
    U_t = L^t at the points of t,   E_t = L^parent at the grid of t,   S_ts = covariance at grid(t) × grid(s)

One-dimensional polynomials by the barycentric formula of the second kind (Berrut & Trefethen, 2004), which is stable
when a point meets a node. On a side of zero length all nodes coincide and the first polynomial is taken as 1.
"""

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.batched.device.threads import in_order, pieces
from h2gpu.clustering.boxes import Boxes

IN_CACHE = 1 << 17  # entries worked out at a time on the host, by one of its threads


def nodes(order):
    """Chebyshev points of the first kind on [−1, 1], descending, (order,)."""
    return np.cos((2 * np.arange(order) + 1) * np.pi / (2 * order))


def weights(order):
    """Barycentric weights of the Chebyshev points of the first kind, (order,)."""
    return (-1.0) ** np.arange(order) * np.sin((2 * np.arange(order) + 1) * np.pi / (2 * order))


def axis_nodes(boxes, order):
    """The nodes of each box along each direction, (boxes, dim, order)."""
    centre, half = (boxes.lower + boxes.upper) / 2, boxes.sides / 2
    return centre[..., None] + half[..., None] * nodes(order)


def grids(boxes, order):
    """The tensor grids of the boxes, last direction fastest, (boxes, order^dim, dim)."""
    along = axis_nodes(boxes, order)
    count, dim, _ = along.shape
    if not count:  # the tensor grid of many directions is larger than any set of points
        return np.empty((0, order**dim, dim))
    index = np.indices((order,) * dim).reshape(dim, -1)
    return np.stack([along[:, j, index[j]] for j in range(dim)], axis=-1).reshape(count, order**dim, dim)


def grids_like(x, boxes, order):
    """The same where the array x is, in its precision."""
    return array_module(x).asarray(grids(boxes, order).astype(x.dtype, copy=False))


def lagrange(x, lower, upper, order):
    """One-dimensional Lagrange polynomials of the interval [lower, upper] at x: (…, order) for x (…)."""
    xp = array_module(x)
    side = upper - lower
    flat = side == 0
    t = xp.asarray(nodes(order), dtype=x.dtype)
    z = xp.where(flat, t[0], (2 * x - (lower + upper)) / xp.where(flat, 1, side))
    difference = z[..., None] - t
    hit = difference == 0
    quotient = xp.asarray(weights(order), dtype=x.dtype) / xp.where(hit, 1, difference)
    values = quotient / quotient.sum(axis=-1, keepdims=True)
    return xp.where(hit.any(axis=-1, keepdims=True), hit.astype(x.dtype), values)


def tensor_product(factors):
    """Row-wise Kronecker product: dim arrays (…, order) → (…, order^dim), last factor fastest."""
    product = factors[0]
    for factor in factors[1:]:
        columns = product.shape[-1] * factor.shape[-1]
        product = (product[..., :, None] * factor[..., None, :]).reshape(*factor.shape[:-1], columns)
    return product


def leaf_values(points, lower, upper, order):
    """L_ν at each point of its own box: (points, order^dim) for points, lower, upper (points, dim)."""
    return tensor_product([lagrange(points[:, j], lower[:, j], upper[:, j], order) for j in range(points.shape[1])])


def values_in_boxes(points, sizes, boxes, order):
    """L_ν of each box at its points, (points, order^dim), where the points are; the first sizes[0] are of box 0."""
    xp, first, dtype = array_module(points), offsets_of(sizes), points.dtype
    out = xp.empty((len(points), order ** points.shape[1]), dtype)

    def work(part):
        owner, rows = np.repeat(np.arange(part.start, part.stop), sizes[part]), slice(*first[[part.start, part.stop]])
        sides = (xp.asarray(side[owner].astype(dtype, copy=False)) for side in (boxes.lower, boxes.upper))
        out[rows] = leaf_values(points[rows], *sides, order)

    _in_parts(work, sizes * out.shape[1], xp)
    return out


def transfer_values(child_boxes, parent_boxes, order, parent_order, like):
    """E of each child, L^parent at its grid: (children, order^dim, parent_order^dim), where `like` is."""
    xp, dim = array_module(like), child_boxes.lower.shape[1]
    sides = axis_nodes(child_boxes, order), parent_boxes.lower[..., None], parent_boxes.upper[..., None]
    x, lower, upper = (xp.asarray(side.astype(like.dtype, copy=False)) for side in sides)
    out = xp.empty((len(x), order**dim, parent_order**dim), like.dtype)

    def work(part):
        along = lagrange(x[part], lower[part], upper[part], parent_order)  # (children, dim, order, parent_order)
        product = along[:, 0]
        for j in range(1, dim):
            shape = len(product), product.shape[1] * order, product.shape[2] * parent_order
            product = (product[:, :, None, :, None] * along[:, j, None, :, None, :]).reshape(shape)
        out[part] = product

    _in_parts(work, np.full(len(x), out.shape[1] * out.shape[2]), xp)
    return out


def _in_parts(work, entries, xp):
    """work(slice of clusters), on the host for so many entries as a cache holds, by its threads."""
    parts = pieces(entries, IN_CACHE) if xp is np else [slice(0, len(entries))]
    list(in_order(work, parts, xp))


def orders_together(samples, order, largest):
    """The orders whose errors at Samples are best worked out in one call of mean_squares, of those from `order` on."""
    return range(order, order + 1)


def mean_squares(samples, orders):
    """The mean squared error of interpolation at Samples, (orders, samples), anywhere; orders: a range."""
    (x, y, exact), (x_again, y_again, exact_again), count = samples.own, samples.again, len(samples.x)
    squares = np.empty((len(orders), len(samples.points)))
    for row, order in zip(squares, orders):
        row[:count] = _mean_squares(samples, slice(count), x, y, exact, order)
        row[count:] = _mean_squares(samples, slice(count, None), x_again, y_again, exact_again, order)
    return squares


def _mean_squares(samples, which, x, y, exact, order):
    dim, square, points = x.shape[-1], np.zeros(len(x)), samples.points[which]
    lower, upper = samples.boxes.lower[which], samples.boxes.upper[which]
    some = np.flatnonzero(points > order**dim)

    def work(part):
        i = some[part]
        boxes = Boxes(lower[i], upper[i])
        corners = (np.repeat(side, x.shape[1], axis=0).astype(x.dtype) for side in (boxes.lower, boxes.upper))
        U = leaf_values(x[i].reshape(-1, dim), *corners, order).reshape(len(i), x.shape[1], order**dim)
        nodes = grids(boxes, order).astype(x.dtype, copy=False)
        error = exact[i] - U @ samples.function(nodes[:, :, None], y[i][:, None])
        square[i] = (error.astype(np.float64) ** 2).mean(axis=(1, 2))

    _in_parts(work, np.full(len(some), order**dim * y.shape[1]), np)
    return square
