"""The leaves of the block tree: which pairs of clusters are low-rank blocks and which are dense.

Dual traversal from (root, root): an admissible pair is a farfield block, a pair of leaves a nearfield block, any other
pair is split into its children's pairs. Every pair of points lies in exactly one block. A symmetric matrix lists one of
(t, s) and (s, t): the one with t ≥ s. See Grasedyck & Hackbusch (2003).
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.clustering.cluster_tree import ClusterTree


@dataclass(frozen=True, eq=False)
class BlockTree:
    """Leaf blocks of a hierarchical matrix, sorted by (column cluster, row cluster).

    row_tree, col_tree   the cluster trees; one and the same for a symmetric matrix
    far                  (2, blocks) row and column clusters of the low-rank blocks
    near                 (2, blocks) row and column clusters of the dense blocks, leaves all
    """

    row_tree: ClusterTree
    col_tree: ClusterTree
    far: np.ndarray
    near: np.ndarray

    @classmethod
    def build(cls, row_tree, col_tree, admissible):
        """Traverse level by level; `admissible(row boxes, col boxes)` decides, but a cluster never is with itself."""
        symmetric = row_tree is col_tree
        t, s = np.zeros(1, np.int64), np.zeros(1, np.int64)
        far, near = [], []
        while len(t):
            is_far = admissible(row_tree.boxes[t], col_tree.boxes[s])
            if symmetric:
                is_far &= t != s
            is_near = ~is_far & (row_tree.first_child[t] < 0) & (col_tree.first_child[s] < 0)
            far.append(np.stack([t[is_far], s[is_far]]))
            near.append(np.stack([t[is_near], s[is_near]]))
            rest = ~(is_far | is_near)
            t, s = _child_pairs(row_tree, col_tree, t[rest], s[rest], symmetric)
        return cls(row_tree, col_tree, _sorted(far, symmetric), _sorted(near, symmetric))

    @property
    def symmetric(self):
        """Whether rows and columns are one tree, each unordered pair listed once."""
        return self.row_tree is self.col_tree

    def __repr__(self):
        return f"BlockTree({self.far.shape[1]} far, {self.near.shape[1]} near blocks, symmetric {self.symmetric})"


def _child_pairs(row_tree, col_tree, t, s, symmetric):
    """All pairs of children; a leaf stands for itself. Of a symmetric diagonal pair, one of the two mixed pairs."""
    row_leaf, col_leaf = row_tree.first_child[t] < 0, col_tree.first_child[s] < 0
    pairs = []
    for i in (0, 1):
        for j in (0, 1):
            keep = ~((row_leaf & (i == 1)) | (col_leaf & (j == 1)))
            if symmetric and (i, j) == (0, 1):
                keep &= t != s
            row = np.where(row_leaf, t, row_tree.first_child[t] + i)[keep]
            col = np.where(col_leaf, s, col_tree.first_child[s] + j)[keep]
            pairs.append((row, col))
    return (np.concatenate(part) for part in zip(*pairs))


def _sorted(pairs, symmetric):
    """One (2, blocks) array by (column, row); row ≥ column when symmetric."""
    t, s = np.concatenate(pairs, axis=1)
    if symmetric:
        t, s = np.maximum(t, s), np.minimum(t, s)
    order = np.lexsort((t, s))
    return np.stack([t[order], s[order]])
