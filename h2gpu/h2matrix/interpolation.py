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
    ranks, own = interpolation_ranks(tree, coupled, order ** x.shape[1])
    grids = interpolation_grids(tree, np.arange(len(tree)), ranks, own, x, order)
    return basis_of_grids(tree, ranks, own, grids, x, order), grids


def interpolation_ranks(tree, coupled, most):
    """Ranks (clusters,) of bases of at most `most` interpolation points, and which are of the clusters' own points."""
    ranks = np.where(_used(tree, coupled), np.minimum(tree.sizes, most), 0)
    return ranks, (ranks > 0) & (tree.sizes <= most)


def interpolation_grids(tree, clusters, ranks, own, x, order):
    """Chebyshev nodes or own points of some clusters, a MatrixBatch of rank × dim; ranks, own: of all clusters."""
    xp, dim, ranks, own = array_module(x), x.shape[1], ranks[clusters], own[clusters]
    batch = MatrixBatch.empty(ranks, dim, x.dtype, xp)
    points = MatrixBatch.from_rows(x, tree.start[clusters[own]], tree.sizes[clusters[own]])
    batched.gather(points, np.arange(len(points)), out=batch[own])
    nodes = np.flatnonzero((ranks > 0) & ~own)
    values = chebyshev.grids(tree.boxes[clusters[nodes]], order).astype(x.dtype, copy=False)
    values = MatrixBatch.from_stack(xp.asarray(values))
    batched.gather(values, np.arange(len(values)), out=batch[nodes])
    return batch


def basis_of_grids(tree, ranks, own, grids, x, order):
    """The ClusterBasis that interpolates at the grids; leaves may be without points."""
    xp, leaves = array_module(x), tree.leaves
    own_leaf = own[leaves] & (tree.sizes[leaves] > 0)
    leaf = with_identities(tree.sizes[leaves], ranks[leaves], own_leaf, x.dtype, xp)
    transfer = MatrixBatch.empty(ranks, np.where(tree.parent >= 0, ranks[tree.parent], 0), x.dtype, xp)

    chosen = ~own_leaf & (ranks[leaves] > 0) & (tree.sizes[leaves] > 0)
    t = leaves[chosen]
    points = x[xp.asarray(ranges(tree.start[t], tree.sizes[t]))]
    values = _at_points(points, tree.sizes[t], tree.boxes[t], order)
    batched.gather(values, np.arange(len(values)), out=leaf[chosen])

    heirs = np.flatnonzero((ranks > 0) & (tree.parent >= 0) & (ranks[tree.parent] > 0))
    t = heirs[own[heirs] & ~own[tree.parent[heirs]]]
    values = _at_points(grids[t].entries.reshape(-1, x.shape[1]), ranks[t], tree.boxes[tree.parent[t]], order)
    batched.gather(values, np.arange(len(values)), out=transfer[t])
    from_grid = heirs[~own[heirs]]
    E = chebyshev.transfer_values(tree.boxes[from_grid], tree.boxes[tree.parent[from_grid]], order, x)
    values = MatrixBatch.from_stack(E)
    batched.gather(values, np.arange(len(values)), out=transfer[from_grid])
    basis = ClusterBasis(tree, ranks, leaf, transfer, own_leaf)
    parents = np.flatnonzero(own & (tree.first_child >= 0))
    identity = MatrixBatch.from_stack(xp.eye(int(ranks[parents].max(initial=0)), dtype=x.dtype)[None])
    batched.gather(identity, np.zeros(len(parents)), out=basis.stacked_transfers(parents))
    return basis


def _used(tree, coupled):
    """Clusters that a farfield block of theirs or of an ancestor passes through, (clusters,) bool."""
    used = np.zeros(len(tree), bool)
    used[coupled.ravel()] = True
    for l in range(1, tree.levels):
        used[tree.level(l)] |= used[tree.parent[tree.level(l)]]
    return used


def _at_points(points, sizes, boxes, order):
    """L of each box at the next sizes[b] points, as a MatrixBatch of points × order^dim."""
    xp, owner = array_module(points), np.repeat(np.arange(len(sizes)), sizes)
    sides = boxes.lower[owner], boxes.upper[owner]
    lower, upper = (xp.asarray(side.astype(points.dtype, copy=False)) for side in sides)
    values = chebyshev.leaf_values(points, lower, upper, order)
    return MatrixBatch.from_rows(values, np.cumsum(sizes) - sizes, sizes)
