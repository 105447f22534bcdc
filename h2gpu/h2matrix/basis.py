"""Nested cluster bases.

    U_parent = [ U_1 E_1 ; U_2 E_2 ]        U_t given at the leaves, E_t elsewhere

Forward transformation: x̂_t = U_tᵀ x_t for all clusters, leaves to root. Backward: y_t += U_t ŷ_t, root to leaves.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.blocksparse.nested import Nested
from h2gpu.clustering import ClusterTree


@dataclass(frozen=True, eq=False)
class ClusterBasis:
    """A basis for every cluster of a tree, each of its own rank.

    tree       the clusters
    ranks      (clusters,) columns of U_t; 0 where no farfield block needs a basis
    leaf       MatrixBatch over tree.leaves: U_t, points × rank; perhaps in float32 beside transfers of float64
    transfer   MatrixBatch over all clusters, packed: E_t, rank × parent's rank (the root's has no columns)
    identical  (leaves,) bool: U_t known to be the identity; None where nothing is known
    """

    tree: ClusterTree
    ranks: np.ndarray
    leaf: MatrixBatch
    transfer: MatrixBatch
    identical: np.ndarray | None = None

    @property
    def dtype(self):
        """Precision of what is computed with the basis: of its transfer matrices."""
        return self.transfer.dtype

    def widened(self):
        """The same basis, its leaf matrices in the precision of all."""
        return replace(self, leaf=self.leaf.astype(self.dtype)) if self.leaf.dtype != self.dtype else self

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

    def stacked_transfers(self, parents):
        """[E_1; E_2] of both children of each parent, sharing memory."""
        return self.transfer[self.tree.children(parents)].pairs()

    @cached_property
    def nested(self):
        """The basis as block-diagonal matrices one after the other: leaf matrices, then transfers level by level."""
        tree = self.tree
        levels = [tree.parents(l) for l in reversed(range(tree.levels - 1))]
        t = np.concatenate([*levels, np.zeros(0, np.int64)])
        return Nested(
            self.leaf,
            self.stacked_transfers(t),
            tree.start[tree.leaves],
            self.starts[tree.first_child[t]],
            self.starts[tree.leaves],
            self.starts[t],
            offsets_of([len(level) for level in levels]),
            int(self.starts[-1]),
        )

    def forward(self, x):
        """x̂_t = U_tᵀ x_t for all clusters: (n, count) in tree order → (Σ ranks, count)."""
        return self.nested.up(x)

    def backward(self, y_hat, y=None):
        """Σ_t U_t ŷ_t, added to y where it is given: (Σ ranks, count) → (n, count) in tree order.

        Overwrites ŷ with the sums over ancestors, and y.
        """
        y = self.leaf.xp.zeros((self.tree.n, y_hat.shape[1]), self.dtype) if y is None else y
        return self.nested.down(y_hat, y)


def memory_by_part(nearfield, row_basis, col_basis, couplings):
    """Bytes of a matrix by part: nearfield, leaf_basis, transfer, coupling, total; a shared basis counts once."""
    bases = [row_basis] if row_basis is col_basis else [row_basis, col_basis]
    parts = {
        "nearfield": nearfield.nbytes,
        "leaf_basis": sum(basis.leaf.nbytes for basis in bases),
        "transfer": sum(basis.transfer.nbytes for basis in bases),
        "coupling": couplings.nbytes,
    }
    return {**parts, "total": sum(parts.values())}
