"""What trees and farfields cut at a leaf size are made of: sums over sampled clusters and blocks, scaled.

    Σ_t f(t) ≈ Σ_rows Σ_{t on its path} n / (rows |t|) f(t),      rank of t = min(|t|, rank of its level)

The levels and sizes of what was sampled are looked up once, whatever ranks are asked for.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from h2gpu.clustering import ClusterTree
from h2gpu.clustering.sampled_blocks import is_leaf


@dataclass(frozen=True)
class Clusters:
    """Some clusters of a tree.

    levels, sizes   (clusters,) of each
    """

    levels: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, tree, clusters):
        """Those of the given numbers."""
        return cls(np.searchsorted(tree.level_offsets, clusters, side="right") - 1, tree.sizes.take(clusters))

    def ranks(self, by_level):
        """Ranks (…, clusters) from those of levels (…, levels)."""
        return np.minimum(by_level.take(self.levels, axis=-1), self.sizes)


@dataclass(frozen=True)
class Cut:
    """A tree cut at a leaf size.

    count, levels    its clusters and levels
    path, parents    Clusters on the paths of sampled rows, and the parents of all but the root
    stands_for       how many clusters each on a path stands for
    inner            which of those on a path have a parent
    leaf             which are leaves
    """

    count: int
    levels: int
    path: Clusters
    parents: Clusters
    stands_for: np.ndarray
    inner: np.ndarray
    leaf: np.ndarray

    @classmethod
    def of(cls, tree, path, leaf_size):
        """Of a tree and the paths (levels, rows) in it."""
        kept = np.flatnonzero(tree.kept(leaf_size))
        t = path[path >= 0]
        t = t[(t == 0) | (tree.sizes.take(tree.parent.take(t)) > leaf_size)]
        clusters, inner = Clusters.of(tree, t), np.flatnonzero(t > 0)
        return cls(
            len(kept),
            int(np.searchsorted(tree.level_offsets, kept[-1], side="right")),
            clusters,
            Clusters.of(tree, tree.parent.take(t.take(inner))),
            tree.n / (path.shape[1] * clusters.sizes),
            inner,
            np.flatnonzero(is_leaf(tree, t, leaf_size)),
        )

    def basis_entries(self, by_level):
        """Entries of all leaf matrices and of all transfer matrices, for ranks of levels."""
        entries = self.stands_for * self.path.ranks(by_level)
        leaves = (entries * self.path.sizes).take(self.leaf).sum()
        return float(leaves), float(entries.take(self.inner) @ self.parents.ranks(by_level))


@dataclass(frozen=True)
class Links:
    """Sampled farfield blocks (t, s) of two trees, and how many blocks each stands for."""

    row_tree: ClusterTree
    col_tree: ClusterTree
    t: np.ndarray
    s: np.ndarray
    share: np.ndarray

    @cached_property
    def rows(self):
        """Clusters t."""
        return Clusters.of(self.row_tree, self.t)

    @cached_property
    def columns(self):
        """Clusters s."""
        return Clusters.of(self.col_tree, self.s)

    def entries(self, rows, cols):
        """Of all coupling matrices, for ranks of levels of both trees."""
        return float(self.share @ (self.rows.ranks(rows) * self.columns.ranks(cols)))

    def work(self, most):
        """Multiplications of their compression by level of the row tree, for ranks of at most `most`, (…, levels)."""
        work = 4.0 * self.share * self.rows.ranks(most) * self.columns.ranks(most) ** 2.0
        levels = most.shape[-1]
        work = work.reshape(most.size // levels, -1)
        cells = self.rows.levels + levels * np.arange(len(work))[:, None]
        return np.bincount(cells.ravel(), work.ravel(), minlength=most.size).reshape(most.shape)
