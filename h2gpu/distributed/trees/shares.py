"""Sorted points → who owns what: clusters get their numbers, and go to their owners with their points.

    number = level offset + clusters of the level with ranks before + place among the rank's own

Clusters above the cut and their children go to all ranks.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.batched.core.offsets import offsets_of
from h2gpu.distributed.partition import Partition, bounds_of, highest, ranks_of
from h2gpu.distributed.trees.essential import EssentialTree
from h2gpu.distributed.trees.exchange import Clusters, joined, merged, swapped, taken

NAME = "clusters of their owners"


@dataclass(frozen=True, eq=False)
class Shared:
    """A rank's share of a tree.

    clusters   Clusters: own ones, those above the cut, and all children of these
    offsets    level offsets of the whole tree
    bounds     (ranks + 1,) positions in tree order where shares begin
    rank       whose
    x          (own, dim) points in tree order
    numbers    (own,) the caller's numbers of them
    """

    clusters: Clusters
    offsets: np.ndarray
    bounds: np.ndarray
    rank: int
    x: np.ndarray
    numbers: np.ndarray

    def tree(self, clusters=None):
        """The EssentialTree of these clusters, or of more."""
        return EssentialTree.of(clusters or self.clusters, self.offsets, self.numbers, self.bounds, self.rank)

    @property
    def partition(self):
        """The Partition of the tree."""
        return Partition(self.tree(), self.bounds)


def shared(comm, points, leaf_size):
    """The share of Sorted points, in the tree with leaves of so many points or more; a call of all ranks."""
    top, below = (taken(part, part.above > leaf_size) for part in (points.top, points.below))
    if not len(top.level):  # the root is there in any case
        top = taken(points.top, slice(0, 1))
    top, own, offsets = _numbered(comm, top, below, points.depth, leaf_size)
    bounds = _bounds(comm, points.n, (top.start, _levels(top, offsets)), (own.start, _levels(own, offsets)))
    every, parts = _by_owners(comm, joined([top, own]), own, bounds)
    found = swapped(comm, parts, taken(top, slice(0, 0)), NAME)
    clusters = merged(top, every, *(Clusters(*some) for some in found.values()))
    owners = np.searchsorted(bounds, points.begin + np.arange(len(points.x)), side="right") - 1
    present = np.flatnonzero(np.bincount(owners)).tolist()  # np.unique by hashing takes a second for 2^19
    parts = {q: (points.x[owners == q], points.numbers[owners == q]) for q in present}
    none = points.x[:0], points.numbers[:0]
    x, numbers = (np.concatenate(part) for part in zip(none, *swapped(comm, parts, none, "points of owners").values()))
    return Shared(clusters, offsets, bounds, comm.rank, x, numbers)


def _numbered(comm, top, below, depth, leaf_size):
    """Clusters of the top, those below that this rank has, and level offsets of the whole tree."""
    counts = [np.bincount(part.level).tolist() for part in (top, below)]
    own = comm.gather(counts[1][depth + 1 :], NAME)
    levels = np.zeros((comm.size, max(map(len, own))), np.int64)
    for row, some in zip(levels, own):
        row[: len(some)] = some
    sizes = np.append(counts[0] + [0] * (depth + 1 - len(counts[0])), levels.sum(axis=0)).astype(np.int64)
    sizes = sizes[: np.flatnonzero(sizes)[-1] + 1]
    offsets = np.concatenate([offsets_of(sizes), np.full(depth + 2, sizes.sum())])  # of levels that are not there
    before = np.concatenate([np.zeros(depth + 1, np.int64), levels[: comm.rank].sum(axis=0), [0, 0]])
    parts = [_clusters(top, offsets, 0 * before, leaf_size), _clusters(below, offsets, before, leaf_size)]
    return *parts, offsets[: len(sizes) + 1]


def _clusters(grown, offsets, before, leaf_size):
    """Clusters of Grown that lie side by side on every level, so many clusters of the level before them."""
    first = offsets_of(np.bincount(grown.level, minlength=1))
    number = offsets[grown.level] + before[grown.level] + np.arange(len(grown.level)) - first[grown.level]
    large = grown.size > leaf_size
    place = np.append(0, np.cumsum(large))
    place = place[:-1] - place[first[grown.level]]
    child = offsets[grown.level + 1] + before[grown.level + 1] + 2 * place
    return Clusters(number, grown.start, grown.size, np.where(large, child, -1), grown.lower, grown.upper)


def _levels(clusters, offsets):
    return np.searchsorted(offsets, clusters.number, side="right") - 1


def _bounds(comm, n, top, own):
    """Where shares begin, as `Partition.of` puts it, from what may be chosen of each rank's clusters."""
    found = comm.gather(highest(*own, n, comm.size), NAME)
    start, level = (np.concatenate(part) for part in zip(top, *found))
    order = np.lexsort((level, start))
    start, first = np.unique(start[order], return_index=True)
    return bounds_of(start, level[order][first], n, comm.size)


def _by_owners(comm, known, own, bounds):
    """Clusters that all ranks need, and {rank: Clusters that it owns} of a rank's own."""
    first, last = ranks_of(bounds, own.start, own.start + own.size)
    lowest, highest = ranks_of(bounds, known.start, known.start + known.size)
    heirs = known.first_child[(lowest != highest) & (known.first_child >= 0)]
    everywhere = (first != last) | np.isin(own.number, np.append(heirs, heirs + 1))
    every = joined([Clusters(*part) for part in comm.gather(tuple(taken(own, everywhere)), NAME)])
    return every, {int(q): taken(own, ~everywhere & (first == q)) for q in np.unique(first)}
