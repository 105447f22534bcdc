"""Nested cluster bases.

    U_parent = [ U_1 E_1 ; U_2 E_2 ]        U_t given at the leaves, E_t elsewhere

Forward transformation: x̂_t = U_tᵀ x_t for all clusters, leaves to root. Backward: y_t += U_t ŷ_t, root to leaves.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from h2gpu import batched
from h2gpu.batched import MatrixBatch
from h2gpu.batched.ragged import offsets_of
from h2gpu.clustering import ClusterTree


@dataclass(frozen=True, eq=False)
class ClusterBasis:
    """A basis for every cluster of a tree, each of its own rank.

    tree       the clusters
    ranks      (clusters,) columns of U_t; 0 where no farfield block needs a basis
    leaf       MatrixBatch over tree.leaves: U_t, points × rank
    transfer   MatrixBatch over all clusters, packed: E_t, rank × parent's rank (the root's has no columns)
    """

    tree: ClusterTree
    ranks: np.ndarray
    leaf: MatrixBatch
    transfer: MatrixBatch

    @property
    def dtype(self):
        """Precision of the entries."""
        return self.leaf.dtype

    def to(self, xp):
        """The same basis in the memory of the array module xp."""
        return replace(self, leaf=self.leaf.to(xp), transfer=self.transfer.to(xp))

    @property
    def nbytes(self):
        """Bytes of leaf and transfer matrices."""
        return self.leaf.nbytes + self.transfer.nbytes

    @cached_property
    def starts(self):
        """Where each cluster's coefficients begin in the vector of all, (clusters + 1,)."""
        return offsets_of(self.ranks)

    def coefficients(self, count):
        """Zero coefficients of all clusters for `count` vectors, (Σ ranks, count)."""
        return self.leaf.xp.zeros((int(self.starts[-1]), count), self.dtype)

    def of_clusters(self, coefficients, clusters):
        """The coefficients of single clusters, as a batch sharing memory."""
        return MatrixBatch.from_rows(coefficients, self.starts[clusters], self.ranks[clusters])

    def of_children(self, coefficients, parents):
        """The coefficients of both children stacked, as a batch sharing memory: siblings are adjacent."""
        first = self.tree.first_child[parents]
        return MatrixBatch.from_rows(coefficients, self.starts[first], self.starts[first + 2] - self.starts[first])

    def stacked_transfers(self, parents):
        """[E_1; E_2] of both children of each parent, sharing memory."""
        return self.transfer[self.tree.children(parents)].stacked(np.full(len(parents), 2))

    def of_leaves(self, x):
        """The rows of x (n, count), in tree order, of each leaf, as a batch sharing memory."""
        leaves = self.tree.leaves
        return MatrixBatch.from_rows(x, self.tree.start[leaves], self.tree.sizes[leaves])

    def forward(self, x):
        """x̂_t = U_tᵀ x_t for all clusters: (n, count) in tree order → (Σ ranks, count)."""
        x_hat = self.coefficients(x.shape[1])
        batched.gemm(self.leaf, self.of_leaves(x), transa=True, out=self.of_clusters(x_hat, self.tree.leaves))
        for l in reversed(range(self.tree.levels - 1)):
            t = self.tree.parents(l)
            E = self.stacked_transfers(t)
            batched.gemm(E, self.of_children(x_hat, t), transa=True, out=self.of_clusters(x_hat, t))
        return x_hat

    def backward(self, y_hat):
        """Σ_t U_t ŷ_t: (Σ ranks, count) → (n, count) in tree order; overwrites ŷ with the sums over ancestors."""
        for l in range(self.tree.levels - 1):
            t = self.tree.parents(l)
            children = self.of_children(y_hat, t)
            batched.gemm(self.stacked_transfers(t), self.of_clusters(y_hat, t), children, beta=1, out=children)
        y = self.leaf.xp.empty((self.tree.n, y_hat.shape[1]), self.dtype)
        batched.gemm(self.leaf, self.of_clusters(y_hat, self.tree.leaves), out=self.of_leaves(y))
        return y
