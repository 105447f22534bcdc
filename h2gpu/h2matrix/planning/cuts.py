"""What trees and farfields cut at a leaf size are made of: sums over sampled clusters and blocks, scaled.

    Σ_t f(t) ≈ Σ_rows Σ_{t on its path} n / (rows |t|) f(t),      rank of t = min(|t|, rank of its level)

The levels and sizes of what was sampled are looked up once, whatever ranks are asked for.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from h2gpu.batched.core.offsets import stable_order
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


@dataclass(frozen=True, eq=False)
class Kinds:
    """Clusters of a tree told apart by level and size, where a level has one size or two next to each other.

    Median splits make such trees.

    number   (clusters,) 2 level, or one more for the larger ones
    least    (levels,) points of the smallest cluster of each level
    """

    number: np.ndarray
    least: np.ndarray

    @classmethod
    def of(cls, tree):
        """Those of a tree; None where a level has clusters of other sizes."""
        first, count = tree.level_offsets[:-1], np.diff(tree.level_offsets)
        least = np.minimum.reduceat(tree.sizes, first)
        if (np.maximum.reduceat(tree.sizes, first) > least + 1).any():
            return None
        return cls(tree.sizes - np.repeat(least - 2 * np.arange(tree.levels), count), least)

    def clusters(self, numbers):
        """Clusters of these kinds, one each."""
        return Clusters(numbers // 2, self.least.take(numbers // 2) + numbers % 2)


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
        parents = np.flatnonzero((tree.sizes > leaf_size) & (tree.first_child >= 0))
        last = tree.first_child[parents[-1]] if len(parents) else 0
        t = path[path >= 0]
        t = t[(t == 0) | (tree.sizes.take(tree.parent.take(t)) > leaf_size)]
        clusters, inner = Clusters.of(tree, t), np.flatnonzero(t > 0)
        return cls(
            1 + 2 * len(parents),
            int(np.searchsorted(tree.level_offsets, last, side="right")),
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

    def held_entries(self, most, kept):
        """{name: entries} of `peak.Held` before compression, and of changes of basis; for ranks of levels before
        compression, and after it."""
        ranks, leaf = self.path.ranks(most), self.leaf
        entries = self.stands_for * ranks
        at_leaves, sizes, squares = ranks.take(leaf), self.path.sizes.take(leaf), entries @ ranks
        level, own = entries.take(leaf) * at_leaves, at_leaves == sizes  # whose matrices are identities
        identities = float(level @ own)
        return {
            "leaves": float(entries.take(leaf) @ sizes) - identities,
            "triangles": float(squares) - identities,
            "weights": float(squares),
            "level": float(level.sum()),
            "changes": float(entries @ self.path.ranks(kept)),
        }


@dataclass(frozen=True)
class Links:
    """Sampled farfield blocks (t, s) of two trees, rows by ascending level, and how many blocks each stands for.

    rows, columns   Clusters t and s, (blocks,) each
    share           (blocks,)

    Blocks whose clusters are of the same Kinds are one: 50 or so in place of 9,000 at 2^17 points.
    """

    rows: Clusters
    columns: Clusters
    share: np.ndarray

    @classmethod
    def of(cls, row_tree, col_tree, t, s, share, kinds=(None, None)):
        """Of the blocks in any order; kinds: the Kinds of both trees, where there are such."""
        rows, cols = kinds
        if rows is not None and cols is not None:
            share = np.bincount(rows.number.take(t) * 2 * len(cols.least) + cols.number.take(s), share)
            met = np.flatnonzero(share)
            t, s = np.divmod(met, 2 * len(cols.least))
            return cls(rows.clusters(t), cols.clusters(s), share.take(met))
        rows = Clusters.of(row_tree, t)
        order = stable_order(rows.levels)
        rows = Clusters(rows.levels.take(order), rows.sizes.take(order))
        return cls(rows, Clusters.of(col_tree, s.take(order)), share.take(order))

    def entries(self, rows, cols):
        """Of all coupling matrices, for ranks of levels of both trees."""
        return float(self.share @ (self.rows.ranks(rows) * self.columns.ranks(cols)))

    @cached_property
    def _by_level(self):
        """Of the levels of the row tree that have blocks: the level, how many, and their largest sizes. Arrays."""
        first = np.flatnonzero(np.diff(self.rows.levels, prepend=-1))
        if not len(first):
            return np.zeros((4, 0), np.int64)
        sizes = (np.maximum.reduceat(side.sizes, first) for side in (self.rows, self.columns))
        return self.rows.levels.take(first), np.add.reduceat(self.share, first), *sizes

    def by_level(self, most):
        """(Their number, largest rows, largest columns) of each level of the row tree that has blocks, a list.

        most   ranks of levels of both trees, in which a block's clusters are taken to be of one level
        """
        levels, numbers, rows, columns = self._by_level
        most = most.take(levels)
        return list(zip(numbers.tolist(), np.minimum(most, rows).tolist(), np.minimum(most, columns).tolist()))

    def work(self, ranks, levels):
        """Multiplications of their compression by level of the row tree, for each of some largest ranks (many,) of all
        clusters: (many, levels)."""
        rows, cols = (np.minimum(side.sizes, ranks[:, None], dtype=float) for side in (self.rows, self.columns))
        cols *= cols
        rows *= cols
        rows *= 4 * self.share
        return sums_by_level(rows, self.rows.levels, levels)

    def whole(self, most):
        """Entries of all, and multiplications of their compression, for ranks of at most `most`, (levels,)."""
        rows, columns = self.rows.ranks(most), self.columns.ranks(most)
        entries = rows * columns
        return float(self.share @ entries), 4 * float(self.share @ (entries * columns))


def sums_by_level(numbers, level, levels):
    """Sums (many, levels) of numbers (many, each), whose levels (each,) ascend."""
    sums = np.zeros((len(numbers), levels))
    first = np.flatnonzero(np.diff(level, prepend=-1))
    if len(first):
        sums[:, level.take(first)] = np.add.reduceat(numbers, first, axis=1)
    return sums
