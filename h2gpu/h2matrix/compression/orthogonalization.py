"""Orthogonal nested bases, by QR up the tree.

    leaves   U_t = Q_t R_t            inner   [ R_1 E_1 ; R_2 E_2 ] = [ F_1 ; F_2 ] R_t

Then U_t = Q_t R_t for every cluster, with Q nested through the transfer matrices F and QᵀQ = I.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu import batched
from h2gpu.batched import MatrixBatch
from h2gpu.batched.copies.identities import with_identities
from h2gpu.batched.core.offsets import consecutive, offsets_of
from h2gpu.h2matrix.basis import ClusterBasis
from h2gpu.progress import phase


@dataclass(frozen=True, eq=False)
class BasisChange:
    """How old coefficients become new ones: one matrix a cluster, new rank × old rank."""

    matrices: MatrixBatch

    def __getitem__(self, clusters):
        return self.matrices[clusters]


def orthogonalize(basis):
    """Orthogonal basis Q of the same spans and the change R with U_t = Q_t R_t, as (ClusterBasis, BasisChange)."""
    basis, tree = basis.widened(), basis.tree
    with phase("orthogonalize"):
        R, Q_leaf, F = _upsweep(basis, "reduced")
    transfer = batched.join([_root_transfer(basis, R), *F])
    return ClusterBasis(tree, R.rows, Q_leaf, transfer), BasisChange(R)


def triangular_factors(basis):
    """R_t of every cluster, without forming Q: all that norms and weights need."""
    with phase("orthogonalize"):
        return _upsweep(basis, "r")[0]


def _upsweep(basis, mode):
    """R of all clusters; with mode "reduced" also Q of the leaves and the new transfers of levels 1, 2, …"""
    tree, xp = basis.tree, basis.leaf.xp
    rows, parents = _new_ranks(basis), np.flatnonzero(tree.first_child >= 0)
    known = np.zeros(len(tree), bool)  # to be identities
    if mode == "r" and basis.identical is not None:
        known[tree.leaves] = basis.identical
    others = consecutive(np.flatnonzero(~known[tree.leaves]))
    R, leaf = with_identities(rows, basis.ranks, known, basis.dtype, xp), basis.leaf[others]
    RE = by_turns(tree, rows, basis)
    stacks = RE[1:].pairs()  # siblings follow each other, in the order of their parents
    R, leaf, transfer, RE, stacks = MatrixBatch.place(R, leaf, basis.transfer, RE, stacks)  # sizes go up once
    Q_leaf = _factor(leaf, R[consecutive(tree.leaves[others])], mode)
    F = []
    for l in reversed(range(tree.levels - 1)):
        t, children = tree.parents(l), tree.span(l + 1)
        if mode == "r" and not rows[tree.span(l)].any():
            continue
        batched.gemm(R[children], transfer[children], out=RE[children])
        Q = _factor(stacks[slice(*np.searchsorted(parents, (t[0], t[-1] + 1)))], R[consecutive(t)], mode)
        if Q is not None:
            F.append(Q.halves(rows[children]))
    return R, Q_leaf, F[::-1]


def by_turns(tree, rows, basis):
    """Room for R_t E_t of all clusters, rows[t] × the parent's rank: levels take turns, each is soon done with."""
    columns = np.where(tree.parent >= 0, basis.ranks[tree.parent], 0)
    before = offsets_of(rows * columns)
    starts = before[tree.level_offsets]
    buffer = basis.leaf.xp.empty(int(np.diff(starts).max()), basis.dtype)
    offsets = before[:-1] - np.repeat(starts[:-1], np.diff(tree.level_offsets))
    return MatrixBatch(buffer, offsets, rows, columns)


def _factor(A, R_out, mode):
    """A = Q R: R into place, Q returned unless mode is "r"."""
    if mode == "r":
        batched.qr(A, mode="r", out=R_out)
        return None
    Q, R = batched.qr(A)
    batched.gather(R, np.arange(len(R)), out=R_out)
    return Q


def _new_ranks(basis):
    """Rows of R_t: min(points, rank) at leaves, min(children's rows, rank) above."""
    tree = basis.tree
    rows = np.minimum(tree.sizes, basis.ranks)
    for l in reversed(range(tree.levels - 1)):
        t, below = tree.parents(l), rows[tree.span(l + 1)]
        rows[t] = np.minimum(below[::2] + below[1::2], basis.ranks[t])
    return rows


def _root_transfer(basis, R):
    """The root's transfer matrix: its rank × 0."""
    return MatrixBatch.empty(R.rows[:1], [0], basis.dtype, basis.leaf.xp)
