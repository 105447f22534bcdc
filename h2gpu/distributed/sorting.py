"""Points → the ClusterTree of `ClusterTree.build`, to the last bit, its work shared by the ranks.

    top      halves of the points, down to some subtrees a rank:  the k smallest by (coordinate, number), not sorted
    below    each rank sorts and splits its own subtrees; all put together what all have found

A cluster's children depend on its own points and their order alone, which is why the parts fit.
"""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from h2gpu.batched.core.offsets import offsets_of
from h2gpu.clustering import ClusterTree
from h2gpu.clustering.boxes import Boxes
from h2gpu.clustering.splitting import SPLITS, grow, median
from h2gpu.covariance.checks import check_points

MORE = 2  # levels of the top beyond log₂ of the ranks: 4 to 8 subtrees a rank, so that shares are even


def cluster_tree(comm, points, leaf_size, split="median"):
    """The tree of (n, dim) points that all hosts have; arguments as for `ClusterTree.build`. A call of all ranks."""
    if comm.size == 1:
        return ClusterTree.build(points, leaf_size, split)
    check_points(points, "points")
    halve = split if callable(split) else SPLITS[split]
    parts = _Parts(comm.rank, comm.size, points, leaf_size, halve)
    parts.descend(0, 0, 0, np.arange(len(points)))
    gathered = comm.gather((parts.clusters, parts.order), "clusters")
    clusters, permutation = {}, np.empty(len(points), np.int64)
    for some, order in gathered:
        clusters |= some
        for start, members in order:
            permutation[start : start + len(members)] = members
    return _joined(clusters, parts.depth, leaf_size, permutation)


@dataclass
class _Parts:
    """What one rank finds.

    clusters   {(level, place from the left): per level below (start, size, lower, upper)} of clusters of the top, which
               have one level, and of whole subtrees
    order      (start, numbers of points in tree order) of subtrees
    """

    rank: int
    ranks: int
    points: np.ndarray
    leaf_size: int
    halve: object
    clusters: dict = field(default_factory=dict)
    order: list = field(default_factory=list)

    @property
    def depth(self):
        """The level of the subtrees."""
        return int(np.ceil(np.log2(self.ranks))) + MORE

    def descend(self, level, place, start, members):
        """Work on the cluster of points `members`, ascending, as far as this rank is in it."""
        below = self.depth - level
        owners = [s * self.ranks >> self.depth for s in (place << below, ((place + 1) << below) - 1)]
        if not owners[0] <= self.rank <= owners[1]:
            return
        x, first = self.points[members], self.rank == owners[0]
        if below == 0 or len(members) <= self.leaf_size:
            if first:
                self._subtree(level, place, start, members, x)
            return
        if first:
            size, corners = (
                np.array([len(x)]),
                (x[x.argmin(0), range(x.shape[1])], x[_last_argmax(x), range(x.shape[1])]),
            )
            self.clusters[level, place] = [(np.array([start]), size, *(corner[None] for corner in corners))]
        left = _left_half(x, self.halve)
        self.descend(level + 1, 2 * place, start, members[left])
        self.descend(level + 1, 2 * place + 1, start + int(left.sum()), members[~left])

    def _subtree(self, level, place, start, members, x):
        order, starts, sizes, _, _, lower, upper, counts = grow(x, self.leaf_size, self.halve)
        ends = offsets_of(counts)
        parts = starts + start, sizes, lower, upper
        self.clusters[level, place] = [tuple(part[a:b] for part in parts) for a, b in pairwise(ends)]
        self.order.append((start, members[order]))


def _left_half(x, halve):
    """Which points go left when they are split across the longest side, (n,) bool: the smallest, equals by number."""
    sides = x.max(axis=0) - x.min(axis=0)
    along, sizes = x[:, sides.argmax()], np.array([len(x)])
    by_number = halve is median or sides.max() == 0
    count = int(median(None, sizes)[0] if by_number else halve(np.sort(along), sizes)[0])
    least = np.partition(along, count - 1)[count - 1]
    left = along < least
    left[np.flatnonzero(along == least)[: count - int(left.sum())]] = True
    return left


def _last_argmax(x):
    """Of each column, the last row of the largest value."""
    return len(x) - 1 - x[::-1].argmax(axis=0)


def _joined(clusters, depth, leaf_size, permutation):
    """The ClusterTree of all parts: level by level from the left."""
    keys = sorted(clusters, key=lambda key: (key[1] << (depth - key[0]), key[0]))
    levels = []
    while True:
        l = len(levels)
        own = [clusters[key][l - key[0]] for key in keys if 0 <= l - key[0] < len(clusters[key])]
        if not own:
            break
        levels.append([np.concatenate(part) for part in zip(*own)])
    start, sizes, lower, upper = (np.concatenate(part) for part in zip(*levels))
    large = sizes > leaf_size
    first_child = np.where(large, 2 * np.cumsum(large) - 1, -1)
    parent = np.concatenate([[-1], np.repeat(np.flatnonzero(large), 2)])
    offsets = offsets_of([len(level[0]) for level in levels])
    return ClusterTree(permutation, start, start + sizes, parent, first_child, Boxes(lower, upper), offsets)
