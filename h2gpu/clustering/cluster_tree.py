"""KD-tree of clusters, built level by level by array operations.

A cluster is split across the longest side of its tight box. For each coordinate we keep all points ordered by
(cluster, coordinate): sorted once at the root, and a stable partition keeps every later level sorted. Boxes are then
the first and last points of a cluster, and a split is a number of points: those that go left. See Bentley (1975) and
Boukaram et al., section 8.3 (mean split).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from h2gpu.batched.ragged import offsets_of, ranges
from h2gpu.clustering.boxes import Boxes


def median(sorted_coordinates, sizes):
    """Left halves: as many points on either side, one more on the left when odd."""
    return (sizes + 1) // 2


def mean(sorted_coordinates, sizes):
    """The points at or below the mean coordinate of their cluster go left; at least one stays on either side."""
    first = offsets_of(sizes)
    means = np.add.reduceat(sorted_coordinates, first[:-1]) / sizes
    left = np.add.reduceat(sorted_coordinates <= np.repeat(means, sizes), first[:-1], dtype=np.int64)
    return np.clip(left, 1, sizes - 1)


SPLITS = {"median": median, "mean": mean}


@dataclass(frozen=True, eq=False)
class ClusterTree:
    """A binary tree of clusters in level order, the root first and siblings adjacent.

    permutation    (n,) the points in tree order: cluster t holds points[permutation[start[t]:stop[t]]]
    start, stop    (clusters,) ranges of points
    parent         (clusters,) −1 for the root
    first_child    (clusters,) children are first_child and first_child + 1; −1 for a leaf
    boxes          tight boxes of the clusters
    level_offsets  (levels + 1,) level l holds clusters level_offsets[l] … level_offsets[l + 1] − 1; level 0 is the root
    """

    permutation: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    parent: np.ndarray
    first_child: np.ndarray
    boxes: Boxes
    level_offsets: np.ndarray

    @classmethod
    def build(cls, points, leaf_size=64, split="median"):
        """The tree of (n, dim) host points, leaves of at most `leaf_size` points.

        split   "median" (balanced), "mean" (Boukaram et al.), or a function of (sorted coordinates, cluster sizes)
                that returns how many points go left

        Raises ValueError for points that are not a finite (n, dim) array with n ≥ 1, or other bad arguments.
        """
        check_points(points, "points")
        if not isinstance(leaf_size, (int, np.integer)) or leaf_size < 1:
            raise ValueError(f"leaf_size: expected a positive integer, got {leaf_size!r}; 64 is the usual choice")
        if not callable(split) and split not in SPLITS:
            raise ValueError(f'split: expected "median" or "mean", got {split!r}')
        return _grow(points, leaf_size, split if callable(split) else SPLITS[split])

    def __len__(self):
        return len(self.start)

    def __repr__(self):
        return f"ClusterTree({self.n} points, {len(self)} clusters, {self.levels} levels, {len(self.leaves)} leaves)"

    @property
    def n(self):
        """Number of points."""
        return len(self.permutation)

    @property
    def levels(self):
        """Number of levels."""
        return len(self.level_offsets) - 1

    @cached_property
    def sizes(self):
        """Points of each cluster, (clusters,)."""
        return self.stop - self.start

    @cached_property
    def leaves(self):
        """Indices of the leaf clusters, ascending; leaves may stand on any level."""
        return np.flatnonzero(self.first_child < 0)

    def cut(self, leaf_size):
        """The tree of the same splits with larger leaves: identical clusters down to `leaf_size` points."""
        keep = np.flatnonzero((self.parent < 0) | (self.sizes[self.parent] > leaf_size))
        new = np.full(len(self) + 1, -1)
        new[keep] = np.arange(len(keep))
        first_child = np.where(self.sizes[keep] > leaf_size, new[self.first_child[keep]], -1)
        offsets = np.searchsorted(keep, self.level_offsets)
        parts = self.start[keep], self.stop[keep], new[self.parent[keep]], first_child, self.boxes[keep]
        return ClusterTree(self.permutation, *parts, offsets[: np.argmax(offsets) + 1])

    def level(self, l):
        """Indices of the clusters of level l."""
        return np.arange(self.level_offsets[l], self.level_offsets[l + 1])

    def parents(self, l):
        """Indices of the clusters of level l that have children."""
        clusters = self.level(l)
        return clusters[self.first_child[clusters] >= 0]


def check_points(points, name):
    """ValueError unless points is a non-empty finite (n, dim) array of real numbers."""
    if getattr(points, "ndim", None) != 2 or points.shape[0] < 1 or points.shape[1] < 1:
        raise ValueError(
            f"{name}: expected shape (n, dim) with n ≥ 1 and dim ≥ 1, got {getattr(points, 'shape', type(points))}; "
            "give one row a point, one column a coordinate"
        )
    if points.dtype.kind != "f":
        raise ValueError(f"{name}: expected floating-point coordinates, got {points.dtype}; convert with astype(float)")
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        raise ValueError(
            f"{name}: expected finite coordinates, got NaN or infinity in {int(bad.sum())} rows, first in row "
            f"{int(np.argmax(bad))}; drop those rows"
        )


def _grow(points, leaf_size, split):
    """Split level by level until no cluster is larger than a leaf."""
    n, dim = points.shape
    orders = np.argsort(points, axis=0, kind="stable").T.copy()  # (dim, n): by (cluster, coordinate)
    starts, sizes = np.zeros(1, np.int64), np.full(1, n, dtype=np.int64)
    parents, levels, count = np.full(1, -1), [], 0
    while True:
        ends = np.stack([orders[:, starts], orders[:, starts + sizes - 1]])
        lower, upper = points[ends, np.arange(dim)[None, :, None]].transpose(0, 2, 1)
        large = sizes > leaf_size
        first_child = np.where(large, count + len(starts) + 2 * (np.cumsum(large) - 1), -1)
        levels.append((starts, sizes, parents, first_child, lower, upper))
        if not large.any():
            break
        left = _partition(points, orders, starts[large], sizes[large], (upper - lower)[large], split)
        parents = np.repeat(count + np.flatnonzero(large), 2)
        count += len(starts)
        starts = np.stack([starts[large], starts[large] + left], axis=1).ravel()
        sizes = np.stack([left, sizes[large] - left], axis=1).ravel()
    starts, sizes, parents, first_child, lower, upper = (np.concatenate(part) for part in zip(*levels))
    offsets = offsets_of([len(level[0]) for level in levels])
    return ClusterTree(orders[0], starts, starts + sizes, parents, first_child, Boxes(lower, upper), offsets)


def _partition(points, orders, starts, sizes, sides, split):
    """Reorder every cluster, left points first, in all orders; returns the numbers of left points."""
    axis, first = np.argmax(sides, axis=1), offsets_of(sizes)[:-1]
    positions, rank = ranges(starts, sizes), ranges(np.zeros_like(sizes), sizes)
    along = np.repeat(axis, sizes)
    points_by_rank = orders[along, positions]
    coordinates = points[points_by_rank, along]
    count = np.where(sides.max(axis=1) > 0, split(coordinates, sizes), median(coordinates, sizes))
    goes_left = np.zeros(len(points), bool)
    goes_left[points_by_rank] = rank < np.repeat(count, sizes)
    for order in orders:
        ids = order[positions]
        left = goes_left[ids]
        lefts_before = np.cumsum(left) - left
        lefts_before -= np.repeat(lefts_before[first], sizes)
        order[
            np.where(left, np.repeat(starts, sizes) + lefts_before, positions + np.repeat(count, sizes) - lefts_before)
        ] = ids
    return count
