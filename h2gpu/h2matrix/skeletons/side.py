"""One side of a matrix while its nested basis is made of skeletons, from the leaves up.

A cluster's candidates are its points (leaves) or its children's skeletons; its skeleton J_t is chosen among them, and

    U_t[candidates] = interpolation from J_t:    leaf matrices at the leaves, [E_1; E_2] above
"""

import numpy as np

from h2gpu import batched
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of, ranges
from h2gpu.h2matrix.basis import ClusterBasis


class Side:
    """A tree, and what is settled of its clusters.

    tree       ClusterTree
    used       (clusters,) bool: clusters with farfield blocks, or whose ancestors have some
    ranks      (clusters,) of those that are settled
    first      (clusters,) where a cluster's skeleton begins
    skeleton   positions of points in tree order, one cluster after the other as they were settled
    """

    def __init__(self, tree, coupled):
        self.tree, self.used = tree, np.zeros(len(tree), bool)
        self.used[coupled] = True
        for l in range(1, tree.levels):
            t = tree.span(l)
            self.used[t] |= self.used[tree.parent[t]]
        self.ranks, self.first = np.zeros((2, len(tree)), np.int64)
        self.skeleton, self._parts = np.zeros(0, np.int64), []

    def together(self, level):
        """Used clusters that are settled at once: all leaves (None), or those of a level that have children."""
        tree = self.tree
        if level is not None and level >= tree.levels - 1:
            return np.zeros(0, np.int64)
        t = tree.leaves if level is None else tree.parents(level)
        return t[self.used[t]]

    def candidates(self, t):
        """Of leaves t positions of points, of others places in `skeleton`: flat, and how many each cluster has."""
        tree = self.tree
        if tree.first_child[t[0]] < 0:
            return ranges(tree.start[t], tree.sizes[t]), tree.sizes[t]
        children = tree.children(t)
        counts = self.ranks[children]
        return ranges(self.first[children], counts), counts[::2] + counts[1::2]

    def positions(self, t, candidates):
        """Positions of points in tree order."""
        return candidates if self.tree.first_child[t[0]] < 0 else self.skeleton[candidates]

    def settle(self, t, candidates, counts, U, ranks, kept):
        """Keep what `interpolative` chose of the candidates; which of them, flat."""
        chosen = np.repeat(offsets_of(counts)[:-1], ranks) + kept
        self.ranks[t], self.first[t] = ranks, len(self.skeleton) + offsets_of(ranks)[:-1]
        self.skeleton = np.concatenate([self.skeleton, self.positions(t, candidates)[chosen]])
        self._parts.append((t, U))
        return chosen

    def basis(self, dtype, xp):
        """The ClusterBasis of what was settled."""
        tree, ranks = self.tree, self.ranks
        above = np.where(tree.parent >= 0, ranks[tree.parent], 0)
        leaf = MatrixBatch.empty(tree.sizes[tree.leaves], ranks[tree.leaves], dtype, xp)
        transfer = MatrixBatch.empty(ranks, above, dtype, xp)
        stacks, parents = transfer[1:].pairs(), np.flatnonzero(tree.first_child >= 0)
        for t, U in self._parts:
            is_leaf = tree.first_child[t[0]] < 0
            out = leaf[np.searchsorted(tree.leaves, t)] if is_leaf else stacks[np.searchsorted(parents, t)]
            batched.gather(U, np.arange(len(U)), out=out)
        return ClusterBasis(tree, ranks, leaf, transfer)
