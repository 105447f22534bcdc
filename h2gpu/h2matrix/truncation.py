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
from h2gpu.arrays import array_module, to_host
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.status import check
from h2gpu.h2matrix.basis import ClusterBasis
from h2gpu.h2matrix.orthogonalization import BasisChange
from h2gpu.progress import phase

ROOM = {"numpy": 0, "cupy": 1 << 30}  # bytes of a level whose ranks stay where they are: a wait costs more than room


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
    weights     Z_t of the clusters of each level, a list that is emptied, so that their memory serves for what follows;
                or None for weights of identity: the basis itself is truncated
    budget      bound on the sum of discarded squares over all clusters, a number or where the basis is
    decompose   (matrices M, which it may overwrite, squared residual allowed) → left vectors, sigma (clusters, values),
                squared residual made and maybe info: see `decompositions`
    rule        (sigma, allowance) → ranks, where sigma is
    """
    tree, used = basis.tree, basis.ranks > 0
    MatrixBatch.place(basis.leaf, basis.transfer, *(weights or []))
    top = int(np.searchsorted(tree.level_offsets, np.argmax(used), side="right")) - 1 if used.any() else tree.levels
    waits = _first_to_wait(basis, top, decompose, weights)
    done, verdicts, below = [], [], None
    room = _room(basis, tree.levels - 1, None, weights) if top < tree.levels else ()
    MatrixBatch.place(*room)
    with phase("truncate", len(tree)) as advance:
        for l in reversed(range(top, tree.levels)):
            t = tree.span(l)
            B, M = _basis_matrices(basis, l, below, weights, *room)
            del room
            if weights is not None:
                weights.pop()
            share = budget * (np.count_nonzero(used[t]) / max(1, np.count_nonzero(used[: t.stop])))
            U, sigma, residual, *info = decompose(M, share / 100)
            if array_module(sigma) is np:
                share = float(share)
            ranks = rule(sigma, share - residual)
            spent = residual + batched.discarded(sigma, ranks)
            verdicts.append((spent, info))
            if l >= waits:
                ranks, spent = to_host(ranks), float(spent)  # the only wait of a level
                _check(verdicts.pop())
            budget = budget - spent
            del M
            room = _room(basis, l - 1, ranks, weights, U.bounds[1]) if l > top else ()
            kept, below = _cut(U, B, ranks, room)
            done.append((l, kept, below))
            advance(len(below))
        advance(int(tree.level_offsets[top]))
    if not np.isfinite(float(budget)):
        for verdict in verdicts:
            _check(verdict)
    return _assembled(basis, done)


def _first_to_wait(basis, top, decompose, weights):
    """The level from which on ranks are waited for: above are bounds of sizes that do, room for them, and no leaves."""
    tree, level, most = basis.tree, top, ROOM[basis.leaf.xp.__name__]
    resident = getattr(decompose, "resident", 0)
    while level < tree.levels and weights is not None:
        clusters = tree.level_offsets[level + 1]
        rank = int(basis.ranks[:clusters].max(initial=0))
        room = 4 * (clusters - tree.level_offsets[level]) * rank**2 * basis.dtype.itemsize
        if room > most or 2 * rank > resident or (tree.first_child[: tree.level_offsets[level]] < 0).any():
            break
        level += 1
    return level


def _check(verdict):
    """LinAlgError for a level's matrices without a result."""
    spent, info = verdict
    if info and not np.isfinite(float(spent)):
        check(*info, "truncated_svd")


def _cut(U, B, ranks, room):
    """The columns of U_t that are kept, and T_t = U_tᵀ B_t; room: for the next level, placed with that for these.

    Where only the device knows the ranks, U_t has its other columns too, and T_t is without the rows of those.
    """
    if array_module(ranks) is np:
        kept = MatrixBatch.empty(B.rows, ranks, B.dtype, B.xp)
        below = MatrixBatch.empty(ranks, B.columns, B.dtype, B.xp)
        MatrixBatch.place(kept, below, *room)
        batched.leading(U, out=kept)
        return kept, batched.gemm(kept, B, transa=True, out=below)
    below = MatrixBatch.empty(U.columns, B.number(2), B.dtype, B.xp, (U.bounds[1], B.bounds[1]))
    MatrixBatch.place(U, below, *room)
    return U, replace(batched.gemm(U, B, transa=True, out=below), rows=ranks)


def _assembled(basis, done):
    """(ClusterBasis, BasisChange), packed, from (level, U_t, T_t) of levels in `done`, the last level first.

    U_t may have more columns than are kept. `done` is emptied, so that memory is given back once it is copied.
    """
    tree, xp, dtype, ranks = basis.tree, basis.leaf.xp, basis.dtype, _all_ranks(basis.tree, done)
    top = int(tree.level_offsets[done[-1][0]]) if done else len(tree)
    above = np.where(tree.parent >= 0, ranks[tree.parent], 0)
    T, E = MatrixBatch.empty(ranks, basis.ranks, dtype, xp), MatrixBatch.empty(ranks, above, dtype, xp)
    parents = np.flatnonzero(tree.first_child >= 0)
    stacks = E[1:].pairs()  # [E_1; E_2]: siblings follow each other, in the parents' order
    MatrixBatch.place(T, stacks)
    batched.join([change for *_, change in done[::-1]], out=T[top:])
    levels = [(l, U) for l, U, _ in done[::-1]]
    done.clear()
    leaves, inner = [MatrixBatch.empty(tree.sizes[tree.leaves[tree.leaves < top]], 0, dtype, xp)], []
    for l, U in levels:
        t, is_leaf = tree.span(l), tree.first_child[tree.span(l)] < 0
        inner.append(_some(U, ~is_leaf))
        if is_leaf.any():
            own, V = t.start + np.flatnonzero(is_leaf), _some(U, is_leaf)
            leaves.append(V if array_module(V.rows) is np else batched.leading(V, tree.sizes[own], ranks[own]))
    batched.join(inner, out=stacks[np.searchsorted(parents, top) :])
    return ClusterBasis(tree, ranks, MatrixBatch.concatenated(leaves), E), BasisChange(T)


def _all_ranks(tree, done):
    """Of all clusters, on the host: those that are on the device come at once."""
    ranks, there = np.zeros(len(tree), np.int64), [T.rows for _, _, T in done if array_module(T.rows) is not np]
    for l, _, T in done[: len(done) - len(there)]:
        ranks[tree.span(l)] = T.rows
    if there:
        found = to_host(array_module(there[0]).concatenate(there[::-1]))  # the levels above those that were waited for
        ranks[int(tree.level_offsets[done[-1][0]]) :][: len(found)] = found
    return ranks


def _some(A, chosen):
    """The chosen matrices, without an index where all or none are."""
    if chosen.all() or not chosen.any():
        return A if chosen.all() else A[:0]
    return A[array_module(A.rows).asarray(np.flatnonzero(chosen))]


def _room(basis, l, ranks, weights, most=0):
    """Room for B_t of level l, the same halved where children's matrices go, and B_t Z_tᵀ.

    ranks     of the level below, where its matrices have their sizes; most: a bound on them
    weights   of the levels down to l
    Leaf matrices stay where they are on a level of nothing else.
    """
    tree, t, xp = basis.tree, basis.tree.span(l), basis.leaf.xp
    is_leaf, Z = tree.first_child[t] < 0, None if weights is None else weights[l]
    if is_leaf.all():
        B = _leaves(basis, t)
        return B, B[:0], B if Z is None else MatrixBatch.empty(B.rows, Z.rows, basis.dtype, xp)
    rows = ranks[::2] + ranks[1::2]
    if array_module(ranks) is not np:
        (_, heights, columns), (k, n) = map(Z.number, range(3)), Z.bounds
        B = MatrixBatch.empty(rows, columns, basis.dtype, xp, (2 * most, n))
        return B, B.halves(ranks), MatrixBatch.empty(rows, heights, basis.dtype, xp, (2 * most, k))
    if is_leaf.any():
        pairs, rows = rows, np.where(is_leaf, tree.sizes[t], 0)
        rows[~is_leaf] = pairs
    B = MatrixBatch.empty(rows, basis.ranks[t], basis.dtype, xp)
    halves = _some(B, ~is_leaf).halves(ranks)
    return B, halves, B if Z is None else MatrixBatch.empty(B.rows, Z.rows, basis.dtype, xp)


def _leaves(basis, t):
    """The leaf matrices of the clusters of a slice."""
    return basis.leaf[slice(*np.searchsorted(basis.tree.leaves, (t.start, t.stop)))]


def _basis_matrices(basis, l, below, weights, B, halves, M):
    """B_t and B_t Z_tᵀ (or B_t) of level l in their room, given T of the level below.

    B_t is U_t for leaves, [ T_1 E_1 ; T_2 E_2 ] for others.
    """
    tree, t = basis.tree, basis.tree.span(l)
    if len(halves):
        U, is_leaf = _leaves(basis, t), tree.first_child[t] < 0
        if len(U):
            batched.gather(U, np.arange(len(U)), out=B[is_leaf])
        batched.gemm(below, basis.transfer[tree.span(l + 1)], out=halves)
    return B, B if weights is None else batched.gemm(B, weights[l], transb=True, out=M)
