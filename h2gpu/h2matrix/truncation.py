"""Truncation of a nested basis to the part that the farfield uses, by SVD up the tree.

    leaves   U_t Z_tᵀ = Û Σ Wᵀ,  keep r columns,  T_t = Û_rᵀ U_t
    inner    the same for [ T_1 E_1 ; T_2 E_2 ], whose Û_r holds the children's new transfer matrices

What is discarded at different clusters is mutually orthogonal, so the squares of the discarded singular values add up
to the squared error of this side. They are therefore spent from one account: each level may discard its share (by
number of clusters) of what is left, smallest values first whichever cluster they belong to.
"""

from dataclasses import dataclass, replace

import numpy as np

from h2gpu import batched
from h2gpu.batched import MatrixBatch, to_host
from h2gpu.batched.arrays import array_module
from h2gpu.batched.verdict import check
from h2gpu.h2matrix.basis import ClusterBasis
from h2gpu.h2matrix.orthogonalization import BasisChange
from h2gpu.progress import phase


@dataclass(frozen=True)
class SharedBudget:
    """Keeps the fewest singular values of a level whose discarded squares sum to the allowance at most."""

    def __call__(self, sigma, allowance):
        """Ranks for sigma (clusters, values), each row descending and padded with zeros, where sigma is."""
        return batched.shared_ranks(sigma, allowance)


@dataclass(frozen=True)
class RelativeToBasis:
    """The paper's rule: every cluster keeps ‖B − B̃‖_F ≤ rtol ‖B‖_F of its own basis matrix B."""

    rtol: float

    def __call__(self, sigma, allowance):
        """Ranks for sigma (clusters, values), each row descending and padded with zeros; no allowance is used."""
        xp = array_module(sigma)
        tail = xp.sqrt(xp.cumsum(sigma[:, ::-1].astype(np.float64) ** 2, axis=1))[:, ::-1]
        return xp.count_nonzero(tail > self.rtol * tail[:, :1], axis=1)


def truncate(basis, weights, budget, decompose, rule):
    """The basis cut down to what the weights leave above the budget: (ClusterBasis, BasisChange).

    basis       ClusterBasis of the uncompressed matrix
    weights     Z_t of all clusters (MatrixBatch), or None for weights of identity: the basis itself is truncated
    budget      bound on the sum of discarded squares over all clusters
    decompose   (matrices M, squared residual allowed) → left vectors, sigma (clusters, values), squared residual made
                and maybe info: see `decompositions`
    rule        (sigma, allowance) → ranks, where sigma is
    """
    tree, used = basis.tree, basis.ranks > 0
    basis = replace(basis, leaf=basis.leaf.placed(), transfer=basis.transfer.placed())
    weights = None if weights is None else weights.placed()
    leaves, transfers, changes, below = [], [], [], None
    with phase("truncate", len(tree)) as advance:
        for l in reversed(range(tree.levels)):
            t = tree.span(l)
            B = _basis_matrices(basis, l, below)
            M = B if weights is None else batched.gemm(B, weights[t], transb=True)
            share = budget * np.count_nonzero(used[t]) / max(1, np.count_nonzero(used[: t.stop]))
            U, ranks, spent = _cut(*decompose(M, share / 100), rule=rule, share=share)
            budget -= spent
            U = batched.leading(U, B.rows, ranks)
            is_leaf = tree.first_child[t] < 0
            leaves.append(_some(U, is_leaf))
            if below is not None:
                transfers.append(_some(U, ~is_leaf).halves(below.rows[::2]))
            below = batched.gemm(U, B, transa=True)
            changes.append(below)
            advance(len(U))
    root = MatrixBatch.empty(below.rows, 0, basis.dtype, basis.leaf.xp)
    T = MatrixBatch.concatenated(changes[::-1])
    transfer = MatrixBatch.concatenated([root, *transfers[::-1]])
    return ClusterBasis(tree, T.rows, MatrixBatch.concatenated(leaves[::-1]), transfer), BasisChange(T)


def _cut(U, sigma, residual, *info, rule, share):
    """U, ranks on the host, and what is spent of the share."""
    ranks = rule(sigma, share - residual)
    xp = array_module(sigma)
    kept = xp.arange(sigma.shape[1]) < ranks[:, None]
    spent = residual + xp.sum(xp.where(kept, 0, sigma) ** 2)
    ranks, spent = to_host(ranks), float(spent)  # the only wait of a level
    if info and not np.isfinite(spent):
        check(*info, "truncated_svd")
    return U, ranks, spent


def _some(A, chosen):
    """The chosen matrices, without an index where all or none are."""
    return A if chosen.all() else A[:0] if not chosen.any() else A[chosen]


def _basis_matrices(basis, l, below):
    """U_t of the leaves and [ T_1 E_1 ; T_2 E_2 ] of the other clusters of level l, given T of the level below."""
    tree, t = basis.tree, basis.tree.span(l)
    is_leaf = tree.first_child[t] < 0
    U = basis.leaf[slice(*np.searchsorted(tree.leaves, (t.start, t.stop)))]
    if is_leaf.all():
        return U
    rows = np.where(is_leaf, tree.sizes[t], 0)
    rows[~is_leaf] = below.rows[::2] + below.rows[1::2]
    B = MatrixBatch.empty(rows, basis.ranks[t], basis.dtype, basis.leaf.xp)
    batched.gather(U, np.arange(len(U)), out=_some(B, is_leaf))
    batched.gemm(below, basis.transfer[tree.span(l + 1)], out=_some(B, ~is_leaf).halves(below.rows[::2]))
    return B
