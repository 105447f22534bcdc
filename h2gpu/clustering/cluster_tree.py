"""KD-tree of clusters: nested ranges of the permuted points, and their boxes.

    cluster t = points[permutation[start[t]:stop[t]]] = left child ∪ right child

See `splitting` for how it grows.
"""

from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.clustering.boxes import Boxes
from h2gpu.clustering.splitting import SPLITS, grow
from h2gpu.covariance.checks import check_points
from h2gpu.texts import brief
from h2gpu.typing import ArrayLike, Integers, Split, Truths


@dataclass(frozen=True, eq=False)
class ClusterTree:
    """A binary tree of clusters in level order, the root first and siblings adjacent. All arrays are on the host.

    permutation    (n,) the points in tree order: cluster t holds points[permutation[start[t]:stop[t]]]
    start, stop    (clusters,) ranges of points
    parent         (clusters,) −1 for the root
    first_child    (clusters,) children are first_child and first_child + 1; −1 for a leaf
    boxes          tight boxes of the clusters
    level_offsets  (levels + 1,) level l holds clusters level_offsets[l] … level_offsets[l + 1] − 1; level 0 is the root

    Made by `build`, which raises ValueError for points or arguments that do not fit.
    Source: Bentley (1975); Boukaram et al. (2018), section 8.3.

    >>> import numpy as np
    >>> from h2gpu import ClusterTree
    >>> tree = ClusterTree.build(np.random.default_rng(0).random((1000, 2)), leaf_size=64)
    >>> tree
    ClusterTree(1000 points, 31 clusters, 5 levels, 16 leaves)
    >>> int(tree.sizes[tree.leaves].max()) <= 64
    True
    """

    permutation: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    parent: np.ndarray
    first_child: np.ndarray
    boxes: Boxes
    level_offsets: np.ndarray

    @classmethod
    def build(cls, points: ArrayLike, leaf_size: int = 64, split: Split = "median") -> "ClusterTree":
        """The tree of (n, dim) points, leaves of at most `leaf_size` points; NumPy and CuPy points give the same.

        split   "median" (balanced), "mean" (Boukaram et al.), or a function that returns how many points go left of
                (coordinates across the split, where the points are, ascending within each cluster; cluster sizes)

        Raises ValueError for points that are not a finite (n, dim) array with n ≥ 1, or other bad arguments.
        """
        check_points(points, "points")
        if not isinstance(leaf_size, (int, np.integer)) or leaf_size < 1:
            raise ValueError(f"leaf_size: expected a positive integer, got {brief(leaf_size)}; 64 is the usual choice")
        if not callable(split) and split not in SPLITS:
            raise ValueError(f'split: expected "median" or "mean", got {brief(split)}')
        permutation, start, sizes, parent, first_child, lower, upper, counts = grow(
            points, leaf_size, split if callable(split) else SPLITS[split]
        )
        host = to_host(permutation).astype(np.int64, copy=False)
        tree = cls(host, start, start + sizes, parent, first_child, Boxes(lower, upper), offsets_of(counts))
        xp = array_module(permutation)
        if xp is not np:
            tree._copies[permutation.device.id] = permutation.astype(np.int64, copy=False)
        return tree

    def __len__(self) -> int:
        return len(self.start)

    def __repr__(self):
        return f"ClusterTree({self.n} points, {len(self)} clusters, {self.levels} levels, {len(self.leaves)} leaves)"

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.permutation)

    @property
    def levels(self) -> int:
        """Number of levels."""
        return len(self.level_offsets) - 1

    @cached_property
    def sizes(self) -> Integers:
        """Points of each cluster, (clusters,)."""
        return self.stop - self.start

    @cached_property
    def leaves(self) -> Integers:
        """Indices of the leaf clusters, ascending; leaves may stand on any level."""
        return np.flatnonzero(self.first_child < 0)

    def permutation_on(self, xp: ModuleType) -> Integers:
        """The permutation in the memory of the array module xp; a copy on the current device is made once and kept."""
        if xp is np:
            return self.permutation
        device = xp.cuda.Device().id
        if device not in self._copies:
            self._copies[device] = xp.asarray(self.permutation)
        return self._copies[device]

    @cached_property
    def _copies(self):
        """The permutation on devices, by their numbers."""
        return {}

    def cut(self, leaf_size: int) -> "ClusterTree":
        """The tree of the same splits with larger leaves: identical clusters down to `leaf_size` points."""
        keep = np.flatnonzero(self.kept(leaf_size))
        new = np.full(len(self) + 1, -1)
        new[keep] = np.arange(len(keep))
        first_child = np.where(self.sizes[keep] > leaf_size, new[self.first_child[keep]], -1)
        offsets = np.searchsorted(keep, self.level_offsets)
        parts = self.start[keep], self.stop[keep], new[self.parent[keep]], first_child, self.boxes[keep]
        tree = ClusterTree(self.permutation, *parts, offsets[: np.argmax(offsets) + 1])
        vars(tree)["_copies"] = self._copies
        return tree

    def kept(self, leaf_size: int) -> Truths:
        """Which clusters remain when the tree is cut at a leaf size, (clusters,) bool."""
        return (self.parent < 0) | (self.sizes[self.parent] > leaf_size)

    def path(self, positions: Integers) -> Integers:
        """The clusters that hold given places of the tree order, root to leaf: (levels, places), −1 below a leaf."""
        path = np.full((self.levels, len(positions)), -1)
        path[0], below = 0, np.arange(len(positions))
        for l in range(1, self.levels):
            child = self.first_child[path[l - 1, below]]
            below, child = below[child >= 0], child[child >= 0]
            path[l, below] = child + (positions[below] >= self.stop[child])
        return path

    def level(self, l: int) -> Integers:
        """Indices of the clusters of level l."""
        return np.arange(self.level_offsets[l], self.level_offsets[l + 1])

    def span(self, l: int) -> slice:
        """The same as a slice. The children of its clusters are span(l + 1), in their order."""
        return slice(int(self.level_offsets[l]), int(self.level_offsets[l + 1]))

    def children(self, parents: Integers) -> Integers:
        """Both children of each of the given clusters, siblings next to each other."""
        return np.stack([self.first_child[parents], self.first_child[parents] + 1], axis=1).ravel()

    def by_level(self, chosen: Truths) -> Integers:
        """How many clusters of each level are chosen (clusters,), (levels,)."""
        return np.diff(offsets_of(chosen)[self.level_offsets])

    def parents(self, l: int) -> Integers:
        """Indices of the clusters of level l that have children."""
        here = self.span(l)
        return here.start + np.flatnonzero(self.first_child[here] >= 0)
