"""Points and a covariance → a distributed H²-matrix, every block evaluated where it is used.

As `h2matrix.construction`, each rank for its own rows. What it evaluates are its leaves and transfers, and covariances
between its grids (points) and those of its ghosts; a ghost's own points come from their owner.
"""

from dataclasses import dataclass, replace

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module, moved_together
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import consecutive, offsets_of
from h2gpu.distributed.ghosts import Share, with_ghosts
from h2gpu.distributed.partition import LocalTree, Partition
from h2gpu.distributed.trees.exchange import fetched
from h2gpu.h2matrix.basis import ClusterBasis
from h2gpu.h2matrix.construction import EvaluatedCouplings
from h2gpu.h2matrix.interpolation import (
    basis_of_grids,
    interpolation_grids,
    largest_ranks,
    orders_of,
    ranks_of,
    used_clusters,
    with_own_points,
)
from h2gpu.h2matrix.nearfield import EvaluatedNearfield


@dataclass(frozen=True, eq=False)
class Side:
    """What a rank has of the rows, or of the columns.

    local    LocalTree
    basis    ClusterBasis on it
    counts   (2, levels) clusters of all ranks on each level, and those that have a basis
    share    Share of the farfield seen from this side: its clusters are rows, ghosts are of the other
    grids    MatrixBatch of the local clusters' interpolation points
    ghosts   MatrixBatch of those of the ghosts
    x        (own points, dim) in tree order
    """

    local: LocalTree
    basis: ClusterBasis
    counts: np.ndarray
    share: Share
    grids: MatrixBatch
    ghosts: MatrixBatch
    x: object


@dataclass(frozen=True, eq=False)
class PlacedCouplings(EvaluatedCouplings):
    """EvaluatedCouplings whose numbers are where the grids are already: nothing waits for their copy.

    there   (rows, columns) where the grids are, sorted by (column, row)
    """

    there: tuple

    def pairs(self, xp):
        """See EvaluatedCouplings."""
        return self.there if xp is self.row_grids.xp else (self.rows, self.columns)


@dataclass(frozen=True, eq=False)
class SortedThere(EvaluatedCouplings):
    """EvaluatedCouplings whose numbers are with the grids alone: what a device has sorted does not come back.

    parts   [(rows, columns)] of the same couplings on the host, in no order
    """

    parts: list

    def counted(self):
        """See EvaluatedCouplings."""
        return self.parts

    def pairs(self, xp):
        """Where the grids are."""
        return self.rows, self.columns


def local_trees(comm, blocks):
    """[LocalTree of the rows, of the columns] of a rank's block tree, one where it is symmetric."""
    trees = [blocks.row_tree] if blocks.symmetric else [blocks.row_tree, blocks.col_tree]
    return [LocalTree(Partition(tree, tree.bounds), comm.rank) for tree in trees]


def sides_of(comm, blocks, locals_, points, there, order):
    """(row side, column side) of a rank's block tree; one object where symmetric.

    blocks   BlockTree on EssentialTrees, and its local trees
    points   [(own, dim) of the rows and those of the columns], on the host; there: the same where comm.xp is
    """
    partitions = [local.partition for local in locals_]
    trees = [partition.tree for partition in partitions]
    coupled = [blocks.far] if blocks.symmetric else list(blocks.far)
    orders = [orders_of(tree, order) for tree in trees]
    known = [_ranks(comm, *side, x.shape[1]) for *side, x in zip(partitions, coupled, orders, points)]
    sides = []
    for i, local in enumerate(locals_):
        j = len(trees) - 1 - i
        pairs = blocks.far if i == 0 else blocks.far[::-1]
        share = Share.of(pairs, blocks.symmetric, local.partition, partitions[j], comm.rank)
        share = share.agreed(comm, partitions[j])
        ranks, own, counts = known[i]
        grids = _grids(comm, partitions[i], local.clusters, ranks, own, points[i], orders[i], there[i])
        ghosts = _grids(
            comm,
            partitions[j],
            share.ghosts,
            *_of_ghosts(comm, share, *known[j][:2], trees[j], orders[j], points[j].shape[1]),
            points[j],
            orders[j],
            there[j],
        )
        x, chosen = there[i], local.clusters
        basis = basis_of_grids(local.tree, ranks[chosen], own[chosen], grids, x, orders[i][chosen])
        sides.append(Side(local, basis, counts, share, grids, ghosts, x))
    return sides[0], sides[-1]


def _ranks(comm, partition, coupled, orders, dim):
    """Ranks, which clusters interpolate at their own points, (clusters,) each, and counts as of a Side.

    True of a rank's own clusters and of all that are shared: a cluster's own points hang on all clusters below, its use
    on blocks of those above, of which its owner knows.
    """
    tree, most = partition.tree, largest_ranks(orders, dim, partition.tree.n)
    used, own = used_clusters(tree, coupled), with_own_points(tree, tree.sizes <= most)
    shared = np.flatnonzero(partition.shared)
    told = comm.sum(np.stack([used[shared], ~own[shared]]).astype(np.int64), "clusters above the cut")
    used[shared], own[shared] = told[0] > 0, told[1] == 0
    own = with_own_points(tree, own)
    mine = partition.first == comm.rank
    counts = comm.sum(np.stack([tree.by_level(mine), tree.by_level(mine & used)]), "clusters by level")
    return *ranks_of(tree, used, own, most), counts


def _of_ghosts(comm, share, ranks, own, tree, orders, dim):
    """Ranks and use of own points of all clusters, those of ghosts from their owners."""
    sends = {q: own[clusters].astype(np.int64) for q, clusters in share.sends.items()}
    found = {q: np.empty(len(g), np.int64) for q, g in share.receives.items() if q != comm.rank}
    sends.pop(comm.rank, None)
    comm.start(sends, found, "which ghosts are their points")()
    ranks, own = ranks.copy(), own.copy()
    for q, values in found.items():
        own[share.ghosts[share.receives[q]]] = values > 0
    most = largest_ranks(orders, dim, tree.n)
    ranks[share.ghosts] = np.where(own, tree.sizes, most)[share.ghosts]
    return ranks, own


def _grids(comm, partition, clusters, ranks, own, x, orders, there):
    """Grids of some clusters, where comm.xp is, as `there`, all of x is; their own points come from where they are."""
    tree, some = partition.tree, clusters[own[clusters]]
    first, counts = _union(tree.start[some], tree.sizes[some])
    points = fetched(comm, partition.bounds, x, first, counts, "points of clusters")
    run = np.searchsorted(first, tree.start, side="right") - 1  # of the points of those clusters, which come together
    start = tree.start - (first - offsets_of(counts)[:-1])[run] if len(first) else tree.start
    moved = replace(tree, start=start, stop=start + tree.sizes)  # where the points are now, of those clusters
    return interpolation_grids(moved, clusters, ranks, own, _moved(points, x, there), orders)


def _moved(rows, x, there):
    """Rows where `there`, all of x is: a part of that where they are a view of some of x."""
    if not np.may_share_memory(rows, x):
        return array_module(there).asarray(rows)
    first = (rows.ctypes.data - x.ctypes.data) // x.strides[0]
    return there[first : first + len(rows)]


def _union(start, counts):
    """(Starts, counts) of what some ranges cover, ascending, those without a gap between them as one."""
    order = np.argsort(start, kind="stable")
    start, stop = start[order], np.maximum.accumulate((start + counts)[order])
    ahead = np.flatnonzero(start[1:] > stop[:-1]) + 1
    start, stop = np.append(start[:1], start[ahead]), np.append(stop[ahead - 1], stop[-1:])
    return start, stop - start


def couplings_of(rows, cols, share, blocks, cov):
    """Diagonal and off-diagonal couplings of the row side, evaluated where used; share: that of the rows, or a part."""
    t, s = _inner(blocks.far, share, rows.local, cols.local)
    diagonal = _placed(cov, rows.grids, cols.grids, t, s, blocks.symmetric)
    t, ghosts = rows.local.numbers(share.rows), rows.ghosts
    if share is not rows.share:
        ghosts = batched.gather(ghosts, np.searchsorted(rows.share.ghosts, share.ghosts))
    return diagonal, _placed(cov, rows.grids, ghosts, t, share.columns, False)


def _inner(pairs, share, rows, cols):
    """Local numbers of the rows and of the columns of a share's diagonal blocks."""
    diagonal = consecutive(share.diagonal)  # all of them, of a process alone
    return rows.numbers(pairs[0][diagonal]), cols.numbers(pairs[1][diagonal])


def _placed(cov, row_grids, col_grids, t, s, symmetric):
    """PlacedCouplings of numbers on the host."""
    there = moved_together(row_grids.xp, t, s)
    return PlacedCouplings(cov.pair_function, row_grids, col_grids, t, s, symmetric, tuple(there))


def all_couplings(side, other, diagonal, turns, cov):
    """All couplings of a side's clusters, none meant twice: their transposes, sorted by the side's clusters.

    diagonal   PlacedCouplings of the rank's diagonal blocks
    turns      1: its rows are clusters of the other side, its columns this side's; −1: the other way round; a symmetric
               matrix has both

    Rows are the other's local clusters, then ghosts.
    """
    xp, inner = side.grids.xp, (diagonal.rows, diagonal.columns)
    off = len(other.grids) + side.share.columns, side.local.numbers(side.share.rows)
    parts = [*(inner[::turn] for turn in turns), off]
    there = [*(diagonal.there[::turn] for turn in turns), moved_together(xp, *off)]
    keys = xp.concatenate([t << 32 | s for s, t in there])
    keys.sort()  # a tenth of a lexicographic sort
    s, t, grids = keys & (1 << 32) - 1, keys >> 32, with_ghosts(other.grids, side.ghosts)
    return SortedThere(cov.pair_function, grids, side.grids, s, t, False, parts)


def nearfield_of(comm, rows, cols, there, share, blocks, points, cov):
    """Diagonal and off-diagonal dense blocks, evaluated where used.

    rows, cols      LocalTree
    points, there   [own points of the rows, of the columns], one of a symmetric matrix: on the host, where comm.xp is
    """
    X = MatrixBatch.from_rows(there[0], rows.tree.start, rows.tree.sizes)
    Y = X if rows is cols else MatrixBatch.from_rows(there[-1], cols.tree.start, cols.tree.sizes)
    nugget = float(cov.nugget) if blocks.symmetric else 0.0
    t, s = _inner(blocks.near, share, rows, cols)
    diagonal = EvaluatedNearfield(cov.pair_function, X, Y, t, s, nugget, blocks.symmetric)
    tree, bounds = blocks.col_tree, cols.partition.bounds
    sizes = tree.sizes[share.ghosts]
    ghosts = fetched(comm, bounds, points[-1], tree.start[share.ghosts], sizes, "near points")
    ghosts = MatrixBatch.from_rows(array_module(there[0]).asarray(ghosts), offsets_of(sizes)[:-1], sizes)
    t = rows.numbers(share.rows)
    parts = diagonal, EvaluatedNearfield(cov.pair_function, X, ghosts, t, share.columns, 0.0, False)
    for part in parts:
        part.pairs(comm.xp)  # now: who copies them waits for what the device has been given, which is nothing yet
    return parts
