"""The blocks that a few rows of the matrix meet: what a block tree holds, without building it.

    Σ_blocks f(t, s) ≈ Σ_rows n / (rows |t|) f(t, s),    over the blocks of evenly spaced rows in tree order

Each row meets some dozens of blocks a level, so the work grows with the levels, not with the points. The traversal for
η reaches a pair of clusters when none of its ancestor pairs is admissible: when η is below the least η of each. So one
traversal for the smallest η answers for all larger ones, and those of larger leaves part ways where the first leaf is
met. Blocks are those of `BlockTree`; of a symmetric matrix both
(t, s) and (s, t) count. The condition: Grasedyck & Hackbusch (2003).
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.batched.core.offsets import offsets_of
from h2gpu.clustering.admissibility import least_eta
from h2gpu.clustering.cluster_tree import ClusterTree


@dataclass(frozen=True, eq=False)
class SampledBlocks:
    """Pairs of clusters that the traversal of some rows visits, root first.

    row_tree, col_tree   the cluster trees, which may go on below the leaves
    leaf_size            clusters of at most so many points are leaves
    eta, kinks           of the traversal
    positions            (rows,) places of the rows in the order of the row tree, ascending
    row                  (pairs,) index of the row that visits the pair
    t, s                 (pairs,) row cluster, which holds that row, and column cluster
    least                (pairs,) smallest η for which the pair is admissible
    reached              (pairs,) η below which the traversal reaches the pair
    leaves               (pairs,) whether both clusters are leaves
    first                (levels + 1,) first pair of each level of the traversal
    """

    row_tree: ClusterTree
    col_tree: ClusterTree
    leaf_size: int
    eta: float
    kinks: tuple
    positions: np.ndarray
    row: np.ndarray
    t: np.ndarray
    s: np.ndarray
    least: np.ndarray
    reached: np.ndarray
    leaves: np.ndarray
    first: np.ndarray

    @classmethod
    def build(cls, row_tree, col_tree, leaf_size, eta, positions, kinks=()):
        """Traverse for the given η, level by level; larger ones may be asked for, smaller ones not.

        kinks   as for `Admissibility`
        """
        count = len(positions)
        roots = np.arange(count), np.zeros(count, np.int64), np.zeros(count, np.int64), np.full(count, np.inf)
        none = roots[0][:0], roots[1][:0], roots[2][:0], roots[3][:0], roots[3][:0], np.zeros(0, bool)
        return cls._grown(row_tree, col_tree, leaf_size, eta, kinks, positions, (none, roots[0][:0]), roots)

    def coarser(self, leaf_size):
        """Those of larger leaves: the same above the first level that has one of them, and traversed from there on."""
        level = min(_first_level_with_leaves(tree, leaf_size) for tree in (self.row_tree, self.col_tree))
        first = self.first[: min(level, len(self.first) - 2) + 1]  # of the levels before, and of this one
        begin, end = first[-1], self.first[len(first)]
        before = [part[:begin] for part in (self.row, self.t, self.s, self.least, self.reached, self.leaves)]
        row, t, s, reached = (part[begin:end] for part in (self.row, self.t, self.s, self.reached))
        given = self.row_tree, self.col_tree, leaf_size, self.eta, self.kinks, self.positions
        return self._grown(*given, (before, first[:-1]), (row, t, s, reached))

    @classmethod
    def _grown(cls, row_tree, col_tree, leaf_size, eta, kinks, positions, before, pairs):
        """Those of the levels before, and of all from the given pairs on: their row, t, s, reached.

        before   row, t, s, least, reached and leaves of levels already visited, and the first pair of each level
        """
        row, t, s, reached = pairs
        visited, sizes = [before[0]], []
        row_children = _children(row_tree, leaf_size)
        col_children = row_children if row_tree is col_tree else _children(col_tree, leaf_size)
        while len(t):
            least = least_eta(row_tree.boxes.take(t), col_tree.boxes.take(s), kinks)
            if row_tree is col_tree:
                least[t == s] = np.inf
            child, second = row_children.take(t), col_children.take(s)
            leaves = np.maximum(child, second) < 0
            visited.append((row, t, s, least, reached, leaves))
            sizes.append(len(t))
            go = np.flatnonzero((least > eta) & ~leaves)
            row, t, s, child, second = (part.take(go) for part in (row, t, s, child, second))
            reached = np.minimum(reached.take(go), least.take(go))
            child += positions.take(row) >= row_tree.stop.take(child)
            t, s, second = _of_children(t, s, child, second)
            s = np.concatenate([s, s.take(second) + 1])
            row, t, reached = (np.concatenate([part, part.take(second)]) for part in (row, t, reached))
        found = (np.concatenate(part) for part in zip(*visited))
        first = np.append(before[1], len(before[0][0]) + offsets_of(np.array(sizes, np.int64)))
        return cls(row_tree, col_tree, leaf_size, eta, kinks, positions, *found, first)

    def far(self, eta):
        """Indices of the low-rank blocks."""
        return np.flatnonzero((self.least <= eta) & (eta < self.reached))

    def near(self, eta):
        """Indices of the dense blocks."""
        return np.flatnonzero(self.leaves & (eta < self.least) & (eta < self.reached))

    def numbers(self, clusters):
        """How many clusters, or blocks with these row clusters, each sampled one stands for: n / (rows |t|)."""
        return self.row_tree.n / (len(self.positions) * self.row_tree.sizes.take(clusters))


def _of_children(t, s, child, first_child):
    """Pairs of the row's child and the column's first child, a leaf standing for itself, and the places of those whose
    column has two.

    child, first_child   −1 for leaves: most levels have none
    """
    if len(t) and min(child.min(), first_child.min()) < 0:
        split = np.flatnonzero(first_child >= 0)
        return np.where(child > 0, child, t), np.where(first_child < 0, s, first_child), split
    return child, first_child, np.arange(len(t))


def _children(tree, leaf_size):
    """The first child of each cluster, −1 for those that are leaves of the tree cut at a leaf size."""
    return np.where(tree.sizes <= leaf_size, -1, tree.first_child)


def _first_level_with_leaves(tree, leaf_size):
    """Of the tree cut at a leaf size."""
    first = np.argmax(_children(tree, leaf_size) < 0)
    return int(np.searchsorted(tree.level_offsets, first, side="right")) - 1


def is_leaf(tree, clusters, leaf_size):
    """Whether clusters are leaves of the tree cut at a leaf size."""
    return (tree.first_child.take(clusters) < 0) | (tree.sizes.take(clusters) <= leaf_size)
