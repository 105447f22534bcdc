"""The blocks that a few rows of the matrix meet: what a block tree holds, without building it.

    Σ_blocks f(t, s) ≈ Σ_rows n / (rows |t|) f(t, s),    over the blocks of evenly spaced rows in tree order

Each row meets some dozens of blocks a level, so the work grows with the levels, not with the points. The traversal for
η reaches a pair of clusters when none of its ancestor pairs is admissible: when η is below the least η of each. So one
traversal for the smallest η answers for all larger ones, and those of larger leaves part ways where the first leaf is
met. Blocks are those of `BlockTree`; of a symmetric matrix both
(t, s) and (s, t) count. The condition: Grasedyck & Hackbusch (2003).
"""

from dataclasses import dataclass
from itertools import pairwise

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
        return cls._grown(row_tree, col_tree, leaf_size, eta, kinks, positions, [], roots)

    def coarser(self, leaf_size):
        """Those of larger leaves: the same down to the level where one of them is met, and traversed from there on."""
        first = self.first[:-1]
        leaf = is_leaf(self.row_tree, self.t, leaf_size) | is_leaf(self.col_tree, self.s, leaf_size)
        level = int(np.searchsorted(first, np.argmax(leaf), side="right")) - 1 if leaf.any() else len(first) - 1
        parts = self.row, self.t, self.s, self.least, self.reached, self.leaves
        visited = [tuple(part[i:j] for part in parts) for i, j in pairwise(first[: level + 1])]
        row, t, s, _, reached, _ = (part[first[level] : self.first[level + 1]] for part in parts)
        given = self.row_tree, self.col_tree, leaf_size, self.eta, self.kinks, self.positions
        return self._grown(*given, visited, (row, t, s, reached))

    @classmethod
    def _grown(cls, row_tree, col_tree, leaf_size, eta, kinks, positions, visited, pairs):
        """Those of the levels that were visited, and of all from the given pairs on: their row, t, s, reached."""
        row, t, s, reached = pairs
        while len(t):
            least = least_eta(row_tree.boxes.take(t), col_tree.boxes.take(s), kinks)
            if row_tree is col_tree:
                least[t == s] = np.inf
            row_leaf, col_leaf = is_leaf(row_tree, t, leaf_size), is_leaf(col_tree, s, leaf_size)
            leaves = row_leaf & col_leaf
            visited.append((row, t, s, least, reached, leaves))
            go = np.flatnonzero((least > eta) & ~leaves)
            row, t, s, row_leaf, col_leaf = (part.take(go) for part in (row, t, s, row_leaf, col_leaf))
            reached = np.minimum(reached.take(go), least.take(go))
            child = row_tree.first_child.take(t)
            t = np.where(row_leaf, t, child + (positions.take(row) >= row_tree.stop.take(child)))
            s = np.where(col_leaf, s, col_tree.first_child.take(s))
            second = np.flatnonzero(~col_leaf)
            s = np.concatenate([s, s.take(second) + 1])
            row, t, reached = (np.concatenate([part, part.take(second)]) for part in (row, t, reached))
        found = (np.concatenate(part) for part in zip(*visited))
        first = offsets_of(np.array([len(level[0]) for level in visited]))
        return cls(row_tree, col_tree, leaf_size, eta, kinks, positions, *found, first)

    def far(self, eta):
        """Indices of the low-rank blocks."""
        return np.flatnonzero((self.least <= eta) & (eta < self.reached))

    def near(self, eta):
        """Indices of the dense blocks."""
        return np.flatnonzero(self.leaves & (eta < self.least) & (eta < self.reached))

    def numbers(self, clusters):
        """How many clusters, or blocks with these row clusters, each sampled one stands for: n / (rows |t|)."""
        return self.row_tree.n / (len(self.positions) * self.row_tree.sizes[clusters])


def is_leaf(tree, clusters, leaf_size):
    """Whether clusters are leaves of the tree cut at a leaf size."""
    return (tree.first_child.take(clusters) < 0) | (tree.sizes.take(clusters) <= leaf_size)
