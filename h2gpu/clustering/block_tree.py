"""The leaves of the block tree: which pairs of clusters are low-rank blocks and which are dense.

Dual traversal from (root, root): an admissible pair is a farfield block, a pair of leaves a nearfield block, any other
pair is split into its children's pairs. Every pair of points lies in exactly one block. A symmetric matrix lists one of
(t, s) and (s, t): the one with t ≥ s. See Grasedyck & Hackbusch (2003).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from h2gpu.clustering.cluster_tree import ClusterTree
from h2gpu.typing import Truths


@dataclass(frozen=True, eq=False)
class BlockTree:
    """Leaf blocks of a hierarchical matrix, sorted by (column cluster, row cluster).

    row_tree, col_tree   the cluster trees; one and the same for a symmetric matrix
    far                  (2, blocks) row and column clusters of the low-rank blocks
    near                 (2, blocks) row and column clusters of the dense blocks, leaves all

    Made by `build`, which raises nothing of its own. Source: Grasedyck & Hackbusch (2003); Börm (2010), chapter 3.

    >>> import numpy as np
    >>> from h2gpu.clustering import Admissibility, BlockTree, ClusterTree
    >>> tree = ClusterTree.build(np.random.default_rng(0).random((1000, 2)))
    >>> blocks = BlockTree.build(tree, tree, Admissibility(eta=1.0))
    >>> len(blocks.far), blocks.near.shape[1] < len(tree.leaves) ** 2 / 2
    (2, True)
    """

    row_tree: ClusterTree
    col_tree: ClusterTree
    far: np.ndarray
    near: np.ndarray

    @classmethod
    def build(cls, row_tree: ClusterTree, col_tree: ClusterTree, admissible: Callable[..., Truths]) -> "BlockTree":
        """Traverse level by level; `admissible(row boxes, col boxes)` decides, but a cluster never is with itself."""
        symmetric = row_tree is col_tree
        t, s = np.zeros(1, np.int64), np.zeros(1, np.int64)
        far, near = [], []
        row_leaf, col_leaf = row_tree.first_child < 0, col_tree.first_child < 0
        while len(t):
            is_far = admissible(row_tree.boxes.take(t), col_tree.boxes.take(s))
            if symmetric:
                is_far &= t != s
            is_near = row_leaf.take(t) & col_leaf.take(s) & ~is_far
            far.append(_selected(t, s, is_far))
            near.append(_selected(t, s, is_near))
            t, s = _selected(t, s, ~(is_far | is_near))
            t, s = child_pairs(t, s, row_tree.first_child.take(t), col_tree.first_child.take(s), symmetric)
        return cls(row_tree, col_tree, in_order(far, symmetric), in_order(near, symmetric))

    @property
    def symmetric(self) -> bool:
        """Whether rows and columns are one tree, each unordered pair listed once."""
        return self.row_tree is self.col_tree

    def __repr__(self):
        return f"BlockTree({self.far.shape[1]} far, {self.near.shape[1]} near blocks, symmetric {self.symmetric})"


def _selected(t, s, mask):
    """The pairs where the mask holds; `take` is three times as fast as indexing by the mask."""
    index = np.flatnonzero(mask)
    return t.take(index), s.take(index)


def child_pairs(t, s, row_child, col_child, symmetric):
    """All pairs of children, whose first ones are given; a leaf stands for itself. Of a symmetric diagonal pair, one of
    the two mixed pairs."""
    row_leaf, col_leaf = row_child < 0, col_child < 0
    row_child, col_child = np.maximum(row_child, t * row_leaf), np.maximum(col_child, s * col_leaf)
    pairs = []
    for i in (0, 1):
        for j in (0, 1):
            skip = (row_leaf & (i == 1)) | (col_leaf & (j == 1))
            if symmetric and (i, j) == (0, 1):
                skip |= t == s
            pairs.append(
                _selected(row_child + i, col_child + j, ~skip) if skip.any() else (row_child + i, col_child + j)
            )
    return (np.concatenate(part) for part in zip(*pairs))


def in_order(pairs, symmetric):
    """One (2, blocks) array by (column, row); row ≥ column when symmetric."""
    t, s = (np.concatenate(part) for part in zip(*pairs))
    if symmetric:
        t, s = np.maximum(t, s), np.minimum(t, s)
    keys = np.sort(s << 32 | t)  # one sort of numbers: a tenth of a lexicographic sort of pairs
    return np.stack([keys & 0xFFFFFFFF, keys >> 32])
