"""Who owns which clusters: contiguous ranges of the tree's order, cut between leaves.

    rank r owns positions bounds[r] … bounds[r + 1] − 1, and the clusters that lie within; others are above the cut

A cut may move by an eighth of a share to where a larger cluster ends, so that few clusters lie above. After the
distribution by subtrees of H2Opus: Zampini et al. (2022), section 3.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from h2gpu.batched.core.offsets import ranges
from h2gpu.clustering import ClusterTree
from h2gpu.distributed.trees.essential import EssentialTree
from h2gpu.texts import brief
from h2gpu.typing import Integers, Truths

SLACK = 1 / 8  # of a share, by which a cut may be moved


@dataclass(frozen=True, eq=False)
class Partition:
    """The clusters of a tree among ranks.

    tree     ClusterTree, the same on all ranks, or an EssentialTree of what this rank knows of it
    bounds   (ranks + 1,) positions in tree order; a rank may own none

    `of` raises ValueError for a number of ranks that is not positive. Source: Zampini et al. (2022), H2Opus, section 3.

    >>> import numpy as np
    >>> from h2gpu import ClusterTree
    >>> from h2gpu.distributed import Partition
    >>> tree = ClusterTree.build(np.random.default_rng(0).random((1000, 2)))
    >>> shares = Partition.of(tree, 4)
    >>> shares.ranks, int(shares.sizes.sum()), bool((shares.sizes > 200).all())
    (4, 1000, True)
    """

    tree: ClusterTree
    bounds: np.ndarray

    @classmethod
    def of(cls, tree: ClusterTree, ranks: int) -> "Partition":
        """About equal shares of the points."""
        if not isinstance(ranks, (int, np.integer)) or ranks < 1:
            raise ValueError(f"ranks: expected a positive integer, got {brief(ranks)}")
        start, first = np.unique(tree.start, return_index=True)  # the highest cluster that begins there
        level = np.searchsorted(tree.level_offsets, first, side="right")
        return cls(tree, bounds_of(start, level, tree.n, ranks))

    @property
    def ranks(self) -> int:
        """How many ranks."""
        return len(self.bounds) - 1

    @property
    def sizes(self) -> Integers:
        """Points of each rank, (ranks,)."""
        return np.diff(self.bounds)

    def points(self, rank: int) -> Integers:
        """The caller's numbers of a rank's points, in tree order.

        Raises ValueError for those of another rank, where each knows its own alone.
        """
        begin, known = (self.tree.begin if self.by_ranks else 0), self.tree.permutation
        found = known[max(self.bounds[rank] - begin, 0) : max(self.bounds[rank + 1] - begin, 0)]
        if len(found) < self.sizes[rank]:
            raise ValueError(f"rank: the points of rank {rank} are known there alone; gather what you need of them")
        return found

    @property
    def by_ranks(self) -> bool:
        """Whether each rank knows a part of the tree, an EssentialTree."""
        return isinstance(self.tree, EssentialTree)

    @cached_property
    def numbers(self) -> Integers:
        """The numbers of the clusters in the tree of all ranks, (clusters,)."""
        return self.tree.numbers if self.by_ranks else np.arange(len(self.tree))

    @cached_property
    def first(self) -> Integers:
        """The lowest rank that has points of each cluster, (clusters,): it owns those above the cut too."""
        return self._spans[0]

    @cached_property
    def last(self) -> Integers:
        """The highest rank that has points of each cluster, (clusters,)."""
        return self._spans[1]

    @cached_property
    def _spans(self):
        return ranks_of(self.bounds, self.tree.start, self.tree.stop)

    @cached_property
    def above(self) -> Truths:
        """Clusters of several ranks, (clusters,) bool."""
        return self.first != self.last

    @cached_property
    def homes(self) -> Integers:
        """The rank that has all points of each cluster, (clusters,) int32; −1 of those above the cut."""
        return np.where(self.above, -1, self.first).astype(np.int32)

    @cached_property
    def shared(self) -> Truths:
        """Those and their children, (clusters,) bool; the root always."""
        parent = self.tree.parent
        return self.above | (parent < 0) | self.above[parent]


def ranks_of(bounds, start, stop):
    """The lowest and the highest rank with points of each range."""
    return np.searchsorted(bounds, start, side="right") - 1, np.searchsorted(bounds, stop, side="left") - 1


def by_rank(clusters, first, last):
    """{rank: clusters whose ranks first … last it is among}, ascending and each once."""
    counts, width = last - first + 1, int(clusters.max(initial=0)) + 1
    ranks, clusters = np.divmod(distinct(ranges(first, counts) * width + np.repeat(clusters, counts)), width)
    begin = np.flatnonzero(np.diff(ranks, prepend=-1))
    return dict(zip(ranks[begin].tolist(), np.split(clusters, begin[1:])))


def distinct(numbers):
    """The numbers, ≥ 0, ascending and each once: as `np.unique`, which takes a second for 2^19 by hashing."""
    numbers = np.sort(numbers)
    return numbers[np.diff(numbers, prepend=-1) > 0]


def bounds_of(start, level, n, ranks):
    """(ranks + 1,) positions where shares begin, of positions where clusters do, ascending, and the highest levels."""
    start, level = np.append(start, n), np.append(level, 0)
    cuts = [_cut(start, level, position, SLACK * n / ranks) for position in n * np.arange(1, ranks) / ranks]
    return np.concatenate([[0], np.maximum.accumulate(np.array(cuts, np.int64)), [n]])


def highest(start, level, n, ranks):
    """Of clusters, starts and levels of those where a share could begin: all others lose to one of them."""
    kept = np.zeros(len(start), bool)
    for position in n * np.arange(1, ranks) / ranks if len(start) else ():
        away = abs(start - position)
        near = np.flatnonzero(away <= SLACK * n / ranks)
        kept[near[level[near] == level[near].min()] if len(near) else np.flatnonzero(away == away.min())] = True
    return start[kept], level[kept]


def _cut(start, level, position, slack):
    """Where a cluster of the highest level near a position begins; else the nearest beginning."""
    near = np.flatnonzero(abs(start - position) <= slack)
    if not len(near):
        return start[np.argmin(abs(start - position))]
    best = near[level[near] == level[near].min()]
    return start[best[np.argmin(abs(start[best] - position))]]


@dataclass(frozen=True, eq=False)
class LocalTree:
    """The clusters that one rank knows of: its own, those above the cut, and their other children as empty leaves.

    partition, rank   whose
    clusters          (local,) numbers in the partition's tree, ascending
    tree              ClusterTree of the rank's points alone, which are in its order, of the same levels
    """

    partition: Partition
    rank: int

    @property
    def begin(self):
        """The first of the rank's points in the order of the whole tree."""
        return int(self.partition.bounds[self.rank])

    @cached_property
    def clusters(self):
        p = self.partition
        return np.flatnonzero(p.shared | (~p.above & (p.first == self.rank)))

    @cached_property
    def names(self):
        """Their numbers in the tree of all ranks, (local,)."""
        return self.partition.numbers[self.clusters]

    @cached_property
    def owned(self):
        """Which of them this rank owns, (local,) bool."""
        return self.partition.first[self.clusters] == self.rank

    @cached_property
    def tree(self):
        p, whole, kept = self.partition, self.partition.tree, self.clusters
        new = np.full(len(whole) + 1, -1)
        new[kept] = np.arange(len(kept))
        begin, end = p.bounds[self.rank], p.bounds[self.rank + 1]
        start, stop = (np.clip(side[kept], begin, end) - begin for side in (whole.start, whole.stop))
        child = np.where(p.above[kept] | self.owned, new[whole.first_child[kept]], -1)
        offsets = np.searchsorted(kept, whole.level_offsets)
        order = np.arange(end - begin)
        return ClusterTree(order, start, stop, new[whole.parent[kept]], child, whole.boxes[kept], _levels(offsets))

    def numbers(self, clusters):
        """The local numbers of clusters of the partition's tree; −1 of others."""
        return self._places.take(clusters)

    @cached_property
    def _places(self):
        places = np.full(len(self.partition.tree), -1)
        places[self.clusters] = np.arange(len(self.clusters))
        return places


def _levels(offsets):
    """Level offsets without empty levels at the end."""
    return offsets[: np.argmax(offsets) + 1]
