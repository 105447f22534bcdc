"""Where the matrices of a truncation lie, level by level: placed ahead, given back early, ranks waited for or not.

A level needs room for B_t, for the same halved where children's matrices go, and for B_t Z_tᵀ; it is placed with what
the level below leaves. On the GPU ranks of the highest levels, few clusters with bounds of sizes that do, stay where
they were found: a wait costs more than room.
"""

from dataclasses import replace

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module, to_host
from h2gpu.batched import MatrixBatch
from h2gpu.batched.copies.verdicts import check
from h2gpu.h2matrix.basis import ClusterBasis
from h2gpu.h2matrix.compression.orthogonalization import BasisChange

ROOM = {"numpy": 0, "cupy": 1 << 30}  # bytes of a level whose ranks stay where they are


class LevelStore:
    """The matrices of the levels of a basis, from the leaves up, and what is kept of them.

    basis      ClusterBasis to be truncated
    weights    Z_t of the clusters of each level, a list that is emptied; None for weights of identity
    resident   sides of matrices up to which the decomposition waits for nothing
    """

    def __init__(self, basis, weights, resident):
        tree, used = basis.tree, basis.ranks > 0
        self.basis, self.weights = basis, weights
        first = np.argmax(used) if used.any() else len(tree)
        self.top = int(np.searchsorted(tree.level_offsets, first, side="right")) - 1
        self.waits = _first_to_wait(basis, self.top, resident, weights)
        self.kept, self.verdicts, self.below = [], [], None
        self.room = _room(basis, tree.levels - 1, None, weights) if self.levels else ()
        MatrixBatch.place(basis.leaf, basis.transfer, *(weights or []), *self.room)

    @property
    def levels(self):
        """Those with bases, the last first."""
        return range(self.basis.tree.levels - 1, self.top - 1, -1)

    def matrices(self, l):
        """B_t and B_t Z_tᵀ (or B_t) of level l; B_t is U_t for leaves, [ T_1 E_1 ; T_2 E_2 ] for others."""
        (B, halves, M), self.room = self.room, ()
        basis, t = self.basis, self.basis.tree.span(l)
        if len(halves):
            U, is_leaf = _leaves(basis, t), basis.tree.first_child[t] < 0
            if len(U):
                batched.gather(U, np.arange(len(U)), out=B[is_leaf])
            batched.gemm(self.below, basis.transfer[basis.tree.span(l + 1)], out=halves)
        if self.weights is None:
            return B, B
        return B, batched.gemm(B, self.weights.pop(), transb=True, out=M)

    def settled(self, l, ranks, spent, info):
        """Ranks and what is discarded, on the host where level l is waited for; LinAlgError if it has no result.

        Where ranks were known beforehand there is nothing to wait for.
        """
        known = array_module(ranks) is np and array_module(spent) is not np
        if l < self.waits or known:
            self.verdicts.append((spent, info))
            return ranks, spent
        ranks, spent = to_host(ranks), float(spent)  # the only wait of a level
        _check(spent, info)
        return ranks, spent

    def keep(self, l, U, B, ranks):
        """The columns of U_t that are kept, and T_t = U_tᵀ B_t."""
        room = _room(self.basis, l - 1, ranks, self.weights, U.bounds[1]) if l > self.top else ()
        kept, self.below = cut(U, B, ranks, room)
        self.room = room
        self.kept.append((l, kept, self.below))

    def truncated(self, left):
        """(ClusterBasis, BasisChange), packed. left: of the account, NaN where a level has no result: LinAlgError."""
        if not np.isfinite(float(left)):
            for verdict in self.verdicts:
                _check(*verdict)
        return assembled(self.basis, self.kept)


def _check(spent, info):
    """LinAlgError for a level's matrices without a result."""
    if info and not np.isfinite(float(spent)):
        check(*info, "truncated_svd")


def _first_to_wait(basis, top, resident, weights):
    """The level from which on ranks are waited for: above are bounds of sizes that do, room for them, and no leaves."""
    tree, level, most = basis.tree, top, ROOM[basis.leaf.xp.__name__]
    while level < tree.levels and weights is not None:
        clusters = tree.level_offsets[level + 1]
        rank = int(basis.ranks[:clusters].max(initial=0))
        room = 4 * (clusters - tree.level_offsets[level]) * rank**2 * basis.dtype.itemsize
        if room > most or 2 * rank > resident or (tree.first_child[: tree.level_offsets[level]] < 0).any():
            break
        level += 1
    return level


def cut(U, B, ranks, room=()):
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


def assembled(basis, done):
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
    return ClusterBasis(tree, ranks, batched.join(leaves), E), BasisChange(T)


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
    """B_t of level l, the same halved where children's matrices go, and B_t Z_tᵀ, uninitialized.

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
        parents = basis.transfer[tree.span(l + 1)].number(2)  # ranks of theirs: columns of B, every one twice
        return B, B.halves(ranks, parents), MatrixBatch.empty(rows, heights, basis.dtype, xp, (2 * most, k))
    if is_leaf.any():
        pairs, rows = rows, np.where(is_leaf, tree.sizes[t], 0)
        rows[~is_leaf] = pairs
    B = MatrixBatch.empty(rows, basis.ranks[t], basis.dtype, xp)
    halves = _some(B, ~is_leaf).halves(ranks)
    return B, halves, B if Z is None else MatrixBatch.empty(B.rows, Z.rows, basis.dtype, xp)


def _leaves(basis, t):
    """The leaf matrices of the clusters of a slice."""
    return basis.leaf[slice(*np.searchsorted(basis.tree.leaves, (t.start, t.stop)))]
