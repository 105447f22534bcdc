"""Interpolation bases on a cluster tree: Chebyshev grids, and a cluster's own points where these are fewer.

    size > order^dim   U_t = L^t at the points,  E_t = L^parent at the grid of t       grid(t): Chebyshev
    size ≤ order^dim   U_t = I,                  E_t = L^parent at the points of t     grid(t): the points of t

Own points interpolate exactly and keep the rank at the number of points; [E_1 ; E_2] of a parent with own points is I.
The order may differ by level, E_t then interpolates the parent's polynomials at a grid of another order: the few large
clusters make most of the error, the many small ones most of the work. Börm, Löhndorf & Melenk (2005), Approximation of
integral operators by variable-order interpolation, Numerische Mathematik 99.
"""

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module
from h2gpu.batched import MatrixBatch
from h2gpu.batched.copies.identities import with_identities
from h2gpu.batched.core.dispatch import twins_of
from h2gpu.h2matrix.basis import ClusterBasis
from h2gpu.texts import brief

twin = twins_of(__name__, cpu="chebyshev")
MOST_ORDER = 1000  # beyond, the interpolation points of a side lie closer than float32 tells apart


def orders_of(tree, order):
    """Interpolation points a direction of every cluster, (clusters,), from one number or one for each level.

    More numbers than levels are for a deeper tree on the other side. Raises ValueError where there are too few, or
    where they are no positive integers.
    """
    orders = np.asarray(order)
    whole = orders.ndim < 2 and orders.size and np.issubdtype(orders.dtype, np.integer)
    within = whole and orders.min() >= 1 and orders.max() <= MOST_ORDER
    if not within or 1 < orders.size < tree.levels:
        raise ValueError(
            f"order: expected an integer from 1 to {MOST_ORDER}, got {brief(order)}; 8 gives about 7 digits at eta 1; "
            f"or one for each of the {tree.levels} levels of the tree, from the root on"
        )
    by_level = np.broadcast_to(orders if orders.size == 1 else orders[: tree.levels], tree.levels)
    return np.repeat(by_level, np.diff(tree.level_offsets)).astype(np.int64)


def interpolation_basis(tree, coupled, x, orders):
    """The basis of all clusters that a farfield block of theirs or of an ancestor uses, and their grids, as a pair.

    coupled   clusters with farfield blocks of their own
    x         (n, dim) points in tree order
    orders    (clusters,) interpolation points a direction
    Returns (ClusterBasis, MatrixBatch of the clusters' grids, rank × dim).
    """
    ranks, own = interpolation_ranks(tree, coupled, orders, x.shape[1])
    grids = interpolation_grids(tree, np.arange(len(tree)), ranks, own, x, orders)
    return basis_of_grids(tree, ranks, own, grids, x, orders), grids


def largest_ranks(orders, dim, points):
    """orders^dim, or the number of points where that is less."""
    return np.minimum(orders.astype(float) ** dim, points).astype(np.int64)


def interpolation_ranks(tree, coupled, orders, dim):
    """Ranks (clusters,) of bases of at most orders^dim interpolation points, and which clusters use their own points.

    Points of a cluster are those of its children: all clusters below one that uses its own do so too.
    """
    used, most = used_clusters(tree, coupled), largest_ranks(orders, dim, tree.n)
    return ranks_of(tree, used, with_own_points(tree, tree.sizes <= most), most)


def ranks_of(tree, used, own, most):
    """The same of clusters with a basis, those that use their own points, and largest ranks, (clusters,) each."""
    return np.where(used, np.where(own, tree.sizes, most), 0), own & used & (tree.sizes > 0)


def with_own_points(tree, own):
    """Those of some clusters of which all below are among them, (clusters,) bool."""
    own = own.copy()
    for l in range(tree.levels - 2, -1, -1):
        here, below = tree.span(l), own[tree.span(l + 1)]
        inner = np.flatnonzero(tree.first_child[here] >= 0)
        own[here][inner] &= below[::2] & below[1::2]
    return own


def interpolation_grids(tree, clusters, ranks, own, x, orders):
    """Chebyshev nodes or own points of some clusters, a MatrixBatch of rank × dim; ranks, own, orders: of all."""
    xp, dim, ranks, own = array_module(x), x.shape[1], ranks[clusters], own[clusters]
    batch = MatrixBatch.empty(ranks, dim, x.dtype, xp)
    points = MatrixBatch.from_rows(x, tree.start[clusters[own]], tree.sizes[clusters[own]])
    batched.gather(points, np.arange(len(points)), out=batch[own])
    for nodes, order in _alike(np.flatnonzero((ranks > 0) & ~own), orders[clusters]):
        _put(MatrixBatch.from_stack(twin(x).grids_like(x, tree.boxes[clusters[nodes]], order)), batch, nodes)
    return batch


def basis_of_grids(tree, ranks, own, grids, x, orders):
    """The ClusterBasis that interpolates at the grids; leaves may be without points."""
    xp, leaves, parent = array_module(x), tree.leaves, tree.parent
    own_leaf = own[leaves] & (tree.sizes[leaves] > 0)
    leaf = with_identities(tree.sizes[leaves], ranks[leaves], own_leaf, x.dtype, xp)
    transfer = MatrixBatch.empty(ranks, np.where(parent >= 0, ranks[parent], 0), x.dtype, xp)

    some = np.flatnonzero(~own_leaf & (ranks[leaves] > 0) & (tree.sizes[leaves] > 0))
    for chosen, order in _alike(some, orders[leaves]):
        t = leaves[chosen]
        points = MatrixBatch.from_rows(x, tree.start[t], tree.sizes[t])
        _put(values_at(points, tree.boxes[t], order), leaf, chosen)

    heirs = np.flatnonzero((ranks > 0) & (parent >= 0) & (ranks[parent] > 0) & ~own[parent])
    for t, order in _alike(heirs[own[heirs]], orders[parent]):
        _put(values_at(grids[t], tree.boxes[parent[t]], order), transfer, t)
    for part, above in _alike(heirs[~own[heirs]], orders[parent]):
        for t, order in _alike(part, orders):
            E = twin(x).transfer_values(tree.boxes[t], tree.boxes[parent[t]], order, above, x)
            _put(MatrixBatch.from_stack(E), transfer, t)
    basis = ClusterBasis(tree, ranks, leaf, transfer, own_leaf)
    parents = np.flatnonzero(own & (tree.first_child >= 0))
    identity = MatrixBatch.from_stack(xp.eye(int(ranks[parents].max(initial=0)), dtype=x.dtype)[None])
    batched.gather(identity, np.zeros(len(parents)), out=basis.stacked_transfers(parents))
    return basis


def _alike(clusters, orders):
    """(Those of one order, that order), for each order among the given clusters."""
    theirs = orders[clusters]
    found = np.flatnonzero(np.bincount(theirs)).tolist()  # np.unique by hashing takes ten times as long
    return [(clusters if len(found) == 1 else clusters[theirs == order], order) for order in found]


def _put(values, batch, index):
    """Matrices in place of those of the given indices."""
    batched.gather(values, np.arange(len(values)), out=batch[index])


def used_clusters(tree, coupled):
    """Clusters that a farfield block of theirs or of an ancestor passes through, (clusters,) bool."""
    used = np.zeros(len(tree), bool)
    used[coupled.ravel()] = True
    for l in range(1, tree.levels):
        here = tree.span(l)
        used[here] |= used[tree.parent[here]]
    return used


def values_at(points, boxes, order):
    """L of each box at its points, a MatrixBatch of points × dim: a MatrixBatch of points × order^dim."""
    sizes, packed = points.rows, batched.gather(points, np.arange(len(points))).buffer.reshape(-1, len(boxes.lower[0]))
    values = twin(packed).values_in_boxes(packed, sizes, boxes, order)
    return MatrixBatch.from_rows(values, np.cumsum(sizes) - sizes, sizes)
