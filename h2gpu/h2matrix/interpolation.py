"""Interpolation bases on a cluster tree: Chebyshev grids, and a cluster's own points where these are fewer.

    size > order^dim   U_t = L^t at the points,  E_t = L^parent at the grid of t       grid(t): Chebyshev
    size ≤ order^dim   U_t = I,                  E_t = L^parent at the points of t     grid(t): the points of t

Own points interpolate exactly and keep the rank at the number of points; [E_1 ; E_2] of a parent with own points is I.
"""

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module
from h2gpu.batched import MatrixBatch
from h2gpu.batched.copies.identities import with_identities
from h2gpu.batched.core.offsets import ranges
from h2gpu.h2matrix import chebyshev
from h2gpu.h2matrix.basis import ClusterBasis


def interpolation_basis(tree, coupled, x, order):
    """The basis of all clusters that a farfield block of theirs or of an ancestor uses, and their grids, as a pair.

    coupled   clusters with farfield blocks of their own
    x         (n, dim) points in tree order
    Returns (ClusterBasis, MatrixBatch of the clusters' grids, rank × dim).
    """
    xp, k = array_module(x), order ** x.shape[1]
    ranks = np.where(_used(tree, coupled), np.minimum(tree.sizes, k), 0)
    own = (ranks > 0) & (tree.sizes <= k)
    grids = _grids(tree, ranks, own, x, order)
    own_leaf = own[tree.leaves]
    leaf = with_identities(tree.sizes[tree.leaves], ranks[tree.leaves], own_leaf, x.dtype, xp)
    transfer = MatrixBatch.empty(ranks, np.where(tree.parent >= 0, ranks[tree.parent], 0), x.dtype, xp)
    identity = MatrixBatch.from_stack(xp.eye(k, dtype=x.dtype)[None])

    interpolated = tree.leaves[~own_leaf & (ranks[tree.leaves] > 0)]
    values = _at_points(tree, interpolated, interpolated, x, order)
    batched.gather(values, np.arange(len(values)), out=leaf[~own_leaf & (ranks[tree.leaves] > 0)])

    heirs = np.flatnonzero((ranks > 0) & (tree.parent >= 0) & (ranks[tree.parent] > 0))
    from_points = heirs[own[heirs] & ~own[tree.parent[heirs]]]
    values = _at_points(tree, from_points, tree.parent[from_points], x, order)
    batched.gather(values, np.arange(len(values)), out=transfer[from_points])
    from_grid = heirs[~own[heirs]]
    E = chebyshev.transfer_values(tree.boxes[from_grid], tree.boxes[tree.parent[from_grid]], order, x)
    values = MatrixBatch.from_stack(E)
    batched.gather(values, np.arange(len(values)), out=transfer[from_grid])
    basis = ClusterBasis(tree, ranks, leaf, transfer, own_leaf)
    parents = np.flatnonzero(own & (tree.first_child >= 0))
    batched.gather(identity, np.zeros(len(parents)), out=basis.stacked_transfers(parents))
    return basis, grids


def _used(tree, coupled):
    """Clusters that a farfield block of theirs or of an ancestor passes through, (clusters,) bool."""
    used = np.zeros(len(tree), bool)
    used[coupled.ravel()] = True
    for l in range(1, tree.levels):
        used[tree.level(l)] |= used[tree.parent[tree.level(l)]]
    return used


def _grids(tree, ranks, own, x, order):
    """Chebyshev nodes or own points of every cluster, rank × dim."""
    xp, dim = array_module(x), x.shape[1]
    batch = MatrixBatch.empty(ranks, dim, x.dtype, xp)
    points = MatrixBatch.from_rows(x, tree.start[own], tree.sizes[own])
    batched.gather(points, np.arange(len(points)), out=batch[own])
    nodes = np.flatnonzero((ranks > 0) & ~own)
    values = MatrixBatch.from_stack(xp.asarray(chebyshev.grids(tree.boxes[nodes], order).astype(x.dtype, copy=False)))
    batched.gather(values, np.arange(len(values)), out=batch[nodes])
    return batch


def _at_points(tree, clusters, boxes_of, x, order):
    """L of the boxes of some clusters at the points of others (pairwise), as a MatrixBatch of points × order^dim."""
    xp, sizes = array_module(x), tree.sizes[clusters]
    owner = np.repeat(boxes_of, sizes)
    lower, upper = (
        xp.asarray(side[owner].astype(x.dtype, copy=False)) for side in (tree.boxes.lower, tree.boxes.upper)
    )
    values = chebyshev.leaf_values(x[xp.asarray(ranges(tree.start[clusters], sizes))], lower, upper, order)
    return MatrixBatch.from_rows(values, np.cumsum(sizes) - sizes, sizes)
