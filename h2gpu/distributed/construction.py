"""Points and a covariance → a distributed H²-matrix, every block evaluated where it is used.

As `h2matrix.construction`, each rank for its own rows. The points and trees are on all hosts; what a rank evaluates are
its leaves and transfers, and covariances between its grids (points) and those of its ghosts.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of, ranges
from h2gpu.distributed.ghosts import Share
from h2gpu.distributed.partition import LocalTree
from h2gpu.h2matrix.basis import ClusterBasis
from h2gpu.h2matrix.construction import EvaluatedCouplings
from h2gpu.h2matrix.interpolation import basis_of_grids, interpolation_grids, interpolation_ranks, orders_of
from h2gpu.h2matrix.nearfield import EvaluatedNearfield


@dataclass(frozen=True, eq=False)
class Side:
    """What a rank has of the rows, or of the columns.

    local    LocalTree
    basis    ClusterBasis on it
    used     (clusters,) of the whole tree: which have a basis
    share    Share of the farfield seen from this side: its clusters are rows, ghosts are of the other
    grids    MatrixBatch of the local clusters' interpolation points
    ghosts   MatrixBatch of those of the ghosts
    x        (own points, dim) in tree order
    """

    local: LocalTree
    basis: ClusterBasis
    used: np.ndarray
    share: Share
    grids: MatrixBatch
    ghosts: MatrixBatch
    x: object


def sides_of(comm, blocks, sites, order):
    """(row side, column side) of a block tree of Sites that lie on the host; one object where symmetric."""
    trees = [blocks.row_tree] if blocks.symmetric else [blocks.row_tree, blocks.col_tree]
    locals_ = [LocalTree.of(tree, comm) for tree in trees]
    coupled = [blocks.far] if blocks.symmetric else list(blocks.far)
    orders = [orders_of(tree, order) for tree in trees]
    ranks = [interpolation_ranks(tree, some, p, sites.dim) for tree, some, p in zip(trees, coupled, orders)]
    points = [sites.points] if blocks.symmetric else [sites.points, sites.col_points]
    points = [x[tree.permutation] for x, tree in zip(points, trees)]
    sides = []
    for i, local in enumerate(locals_):
        j, whole, xp = len(trees) - 1 - i, trees[i], comm.xp
        pairs = blocks.far if i == 0 else blocks.far[::-1]
        share = Share.of(pairs, blocks.symmetric, local.partition, locals_[j].partition, comm.rank)
        grids = interpolation_grids(whole, local.clusters, *ranks[i], points[i], orders[i]).to(xp)
        ghosts = interpolation_grids(trees[j], share.ghosts, *ranks[j], points[j], orders[j]).to(xp)
        x = xp.asarray(points[i][local.begin : local.begin + local.tree.n])
        own = [part[local.clusters] for part in ranks[i]]
        basis = basis_of_grids(local.tree, *own, grids, x, orders[i][local.clusters])
        sides.append(Side(local, basis, ranks[i][0] > 0, share, grids, ghosts, x))
    return sides[0], sides[-1]


def couplings_of(rows, cols, share, blocks, cov):
    """Diagonal and off-diagonal couplings of the row side, evaluated where used; share: that of the rows, or a part."""
    t, s = (part[share.diagonal] for part in blocks.far)
    t, s = rows.local.numbers(t), cols.local.numbers(s)
    diagonal = EvaluatedCouplings(cov.pair_function, rows.grids, cols.grids, t, s, blocks.symmetric)
    t, ghosts = rows.local.numbers(share.rows), rows.ghosts
    if share is not rows.share:
        ghosts = batched.gather(ghosts, np.searchsorted(rows.share.ghosts, share.ghosts))
    return diagonal, EvaluatedCouplings(cov.pair_function, rows.grids, ghosts, t, share.columns, False)


def all_couplings(side, other, pairs, symmetric, cov):
    """All couplings of a side's clusters, none meant twice: columns are the other's local clusters, then ghosts.

    pairs   (2, blocks) clusters of this side and of the other
    """
    t, s = side.local.numbers(pairs[0][side.share.diagonal]), other.local.numbers(pairs[1][side.share.diagonal])
    if symmetric:
        t, s = np.append(t, s), np.append(s, t)
    t = np.append(t, side.local.numbers(side.share.rows))
    s = np.append(s, len(other.grids) + side.share.columns)
    order = np.lexsort((t, s))
    grids = MatrixBatch.concatenated([other.grids, side.ghosts])
    return EvaluatedCouplings(cov.pair_function, side.grids, grids, t[order], s[order], False)


def nearfield_of(rows, cols, share, blocks, sites):
    """Diagonal and off-diagonal dense blocks, evaluated where used."""
    cov, (t, s) = sites.cov, (part[share.diagonal] for part in blocks.near)
    X, Y = (MatrixBatch.from_rows(side.x, side.local.tree.start, side.local.tree.sizes) for side in (rows, cols))
    nugget = float(cov.nugget) if blocks.symmetric else 0.0
    t, s = rows.local.numbers(t), cols.local.numbers(s)
    diagonal = EvaluatedNearfield(cov.pair_function, X, X if rows is cols else Y, t, s, nugget, blocks.symmetric)
    tree, points = blocks.col_tree, sites.columns
    sizes = tree.sizes[share.ghosts]
    ghosts = points[tree.permutation[ranges(tree.start[share.ghosts], sizes)]]
    ghosts = MatrixBatch.from_rows(array_module(rows.x).asarray(ghosts), offsets_of(sizes)[:-1], sizes)
    t = rows.local.numbers(share.rows)
    return diagonal, EvaluatedNearfield(cov.pair_function, X, ghosts, t, share.columns, 0.0, False)
