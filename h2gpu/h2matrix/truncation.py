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
    basis, Z = replace(basis, leaf=basis.leaf[:], transfer=basis.transfer[:]), None if weights is None else weights[:]
    MatrixBatch.place(basis.leaf, basis.transfer, *([] if Z is None else [Z]))
    leaves, transfers, changes, below = [], [], [], None
    top = int(np.searchsorted(tree.level_offsets, np.argmax(used), side="right")) - 1 if used.any() else tree.levels
    room = _room(basis, tree.levels - 1, None, Z) if top < tree.levels else ()
    MatrixBatch.place(*room)
    with phase("truncate", len(tree)) as advance:
        for l in reversed(range(top, tree.levels)):
            t = tree.span(l)
            B, M = _basis_matrices(basis, l, below, Z, *room)
            share = budget * np.count_nonzero(used[t]) / max(1, np.count_nonzero(used[: t.stop]))
            U, ranks, spent = _cut(*decompose(M, share / 100), rule=rule, share=share)
            budget -= spent
            kept, T = (MatrixBatch.empty(*size, B.dtype, B.xp) for size in ((B.rows, ranks), (ranks, B.columns)))
            room = _room(basis, l - 1, ranks, Z) if l > top else ()
            MatrixBatch.place(kept, T, *room)
            batched.gemm(batched.leading(U, out=kept), B, transa=True, out=T)
            is_leaf = tree.first_child[t] < 0
            leaves.append(_some(kept, is_leaf))
            if below is not None:
                transfers.append(_some(kept, ~is_leaf).halves(below.rows[::2]))
            changes.append(T)
            below = T
            advance(len(T))
        advance(int(tree.level_offsets[top]))
    return _assembled(basis, top, leaves, transfers, changes)


def _assembled(basis, top, leaves, transfers, changes):
    """(ClusterBasis, BasisChange) from the matrices of each level, the last first; none above `top` has a rank."""
    tree, xp = basis.tree, basis.leaf.xp
    count = int(tree.level_offsets[top])
    none = np.zeros(count, np.int64)
    changes.append(MatrixBatch.empty(none, none, basis.dtype, xp))
    leaves.append(MatrixBatch.empty(tree.sizes[tree.leaves[tree.leaves < count]], 0, basis.dtype, xp))
    T = MatrixBatch.concatenated(changes[::-1])
    below = slice(0, int(tree.level_offsets[min(top + 1, tree.levels)]))
    transfers.append(MatrixBatch.empty(T.rows[below], 0, basis.dtype, xp))
    leaf, transfer = (MatrixBatch.concatenated(parts[::-1]) for parts in (leaves, transfers))
    return ClusterBasis(tree, T.rows, leaf, transfer), BasisChange(T)


def _cut(U, sigma, residual, *info, rule, share):
    """U, ranks on the host, and what is spent of the share."""
    ranks = rule(sigma, share - residual)
    discarded = batched.discarded(sigma, ranks)
    ranks, spent = to_host(ranks), float(residual) + float(discarded)  # the only wait of a level
    if info and not np.isfinite(spent):
        check(*info, "truncated_svd")
    return U, ranks, spent


def _some(A, chosen):
    """The chosen matrices, without an index where all or none are."""
    return A if chosen.all() else A[:0] if not chosen.any() else A[chosen]


def _room(basis, l, ranks, Z):
    """Room for B_t of level l, the same halved where children's matrices go, and B_t Z_tᵀ; ranks: of the level below.

    Leaf matrices stay where they are on a level of nothing else.
    """
    tree, t, xp = basis.tree, basis.tree.span(l), basis.leaf.xp
    is_leaf = tree.first_child[t] < 0
    if is_leaf.all():
        B = _leaves(basis, t)
        halves = B[:0]
    else:
        pairs = ranks[::2] + ranks[1::2]
        rows = pairs
        if is_leaf.any():
            rows = np.where(is_leaf, tree.sizes[t], 0)
            rows[~is_leaf] = pairs
        B = MatrixBatch.empty(rows, basis.ranks[t], basis.dtype, xp)
        halves = _some(B, ~is_leaf).halves(ranks[::2])
    return B, halves, B if Z is None else MatrixBatch.empty(B.rows, Z[t].rows, basis.dtype, xp)


def _leaves(basis, t):
    """The leaf matrices of the clusters of a slice."""
    return basis.leaf[slice(*np.searchsorted(basis.tree.leaves, (t.start, t.stop)))]


def _basis_matrices(basis, l, below, Z, B, halves, M):
    """B_t and B_t Z_tᵀ (or B_t) of level l in their room, given T of the level below.

    B_t is U_t for leaves, [ T_1 E_1 ; T_2 E_2 ] for others.
    """
    tree, t = basis.tree, basis.tree.span(l)
    if len(halves):
        U, is_leaf = _leaves(basis, t), tree.first_child[t] < 0
        if len(U):
            batched.gather(U, np.arange(len(U)), out=B[is_leaf])
        batched.gemm(below, basis.transfer[tree.span(l + 1)], out=halves)
    return B, B if Z is None else batched.gemm(B, Z[t], transb=True, out=M)
