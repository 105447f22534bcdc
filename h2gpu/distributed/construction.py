"""Points and a covariance → a distributed H²-matrix, every block evaluated where it is used.

As `h2matrix.construction`, each rank for its own rows. What it evaluates are its leaves and transfers, and covariances
between its grids (points) and those of its ghosts; a ghost's own points come from their owner.
"""

from dataclasses import dataclass, replace

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module, to_host
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of, ranges
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


def sides_of(comm, blocks, points, order):
    """(row side, column side) of a rank's block tree; one object where symmetric.

    blocks   BlockTree on EssentialTrees; points: [(own, dim) of the rows and those of the columns], on the host
    """
    trees = [blocks.row_tree] if blocks.symmetric else [blocks.row_tree, blocks.col_tree]
    partitions = [Partition(tree, tree.bounds) for tree in trees]
    locals_ = [LocalTree(partition, comm.rank) for partition in partitions]
    coupled = [blocks.far] if blocks.symmetric else list(blocks.far)
    orders = [orders_of(tree, order) for tree in trees]
    known = [_ranks(comm, *side, x.shape[1]) for *side, x in zip(partitions, coupled, orders, points)]
    sides, there = [], [comm.xp.asarray(x) for x in points]
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
    places = _union(tree.start[some], tree.stop[some])
    points, start = (
        fetched(comm, partition.bounds, x, places, "points of clusters"),
        np.searchsorted(places, tree.start),
    )
    moved = replace(tree, start=start, stop=start + tree.sizes)  # where the points are now, of those clusters
    return interpolation_grids(moved, clusters, ranks, own, _moved(points, x, there), orders)


def _moved(rows, x, there):
    """Rows where `there`, all of x is: a part of that where they are a view of some of x."""
    if not np.may_share_memory(rows, x):
        return array_module(there).asarray(rows)
    first = (rows.ctypes.data - x.ctypes.data) // x.strides[0]
    return there[first : first + len(rows)]


def _union(start, stop):
    """The places in some ranges of a tree, of which two are apart or one holds the other; ascending, each once."""
    order = np.lexsort((-stop, start))
    start, stop = start[order], stop[order]
    outer = np.append(True, start[1:] >= np.maximum.accumulate(stop)[:-1])[: len(start)]
    start, stop = start[outer], stop[outer]
    apart = np.flatnonzero(start[1:] != stop[:-1]) + 1  # of ranges without a gap between them one is made
    start, stop = np.append(start[:1], start[apart]), np.append(stop[apart - 1], stop[-1:])
    return ranges(start, stop - start)


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
    xp = side.grids.xp
    pairs = to_host(xp.sort(xp.asarray(s << 32 | t)))  # a tenth of a lexicographic sort
    grids = with_ghosts(other.grids, side.ghosts)
    return EvaluatedCouplings(cov.pair_function, side.grids, grids, pairs & (1 << 32) - 1, pairs >> 32, False)


def nearfield_of(comm, rows, cols, share, blocks, points, cov):
    """Diagonal and off-diagonal dense blocks, evaluated where used; points: own ones of the columns, on the host."""
    t, s = (part[share.diagonal] for part in blocks.near)
    X, Y = (MatrixBatch.from_rows(side.x, side.local.tree.start, side.local.tree.sizes) for side in (rows, cols))
    nugget = float(cov.nugget) if blocks.symmetric else 0.0
    t, s = rows.local.numbers(t), cols.local.numbers(s)
    diagonal = EvaluatedNearfield(cov.pair_function, X, X if rows is cols else Y, t, s, nugget, blocks.symmetric)
    tree, bounds = blocks.col_tree, cols.local.partition.bounds
    sizes = tree.sizes[share.ghosts]
    ghosts = fetched(comm, bounds, points, ranges(tree.start[share.ghosts], sizes), "near points")
    ghosts = MatrixBatch.from_rows(array_module(rows.x).asarray(ghosts), offsets_of(sizes)[:-1], sizes)
    t = rows.local.numbers(share.rows)
    return diagonal, EvaluatedNearfield(cov.pair_function, X, ghosts, t, share.columns, 0.0, False)
