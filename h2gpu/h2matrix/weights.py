"""Total weights: what the farfield makes of each basis vector.

    Z_tᵀ Z_t = Σ_s (R_s S_tsᵀ)ᵀ R_s S_tsᵀ + (Z_parent E_tᵀ)ᵀ Z_parent E_tᵀ          for all s in row(t)

Then the rows of t in all farfield blocks of t and of its ancestors are U_t Z_tᵀ Pᵀ with orthonormal P: the singular
values of U_t Z_tᵀ are those of that part of the matrix. Börm, Efficient Numerical Methods for Non-local Operators
(2010), section 6.6.
"""

import numpy as np

from h2gpu import batched
from h2gpu.batched import MatrixBatch, Products
from h2gpu.batched.arrays import to_host
from h2gpu.batched.ragged import offsets_of
from h2gpu.batched.threads import pieces
from h2gpu.progress import phase

STACK_ENTRIES = {"numpy": 1 << 22, "cupy": 1 << 25}  # of couplings evaluated at a time: bounds the memory


def total_weights(basis, couplings, R, column_side=False):
    """Z_t of the clusters, a list of MatrixBatches by level: rank × rank, or without rows where there is no farfield.

    basis         the side's ClusterBasis (rows, unless column_side)
    couplings     BlockSparse or EvaluatedCouplings
    R             triangular factors of the other side's basis (of the same, when symmetric)
    """
    tree, links = basis.tree, _links(couplings, len(basis.tree), R, column_side)
    heights = sum(kind.heights for kind in links)
    rows, spans = np.where(_reached(tree, heights), basis.ranks, 0), [tree.span(l) for l in range(tree.levels)]
    weights = [MatrixBatch.empty(rows[t], basis.ranks[t], R.dtype, R.xp) for t in spans[::-1]][::-1]  # largest first
    MatrixBatch.place(*weights)
    transfer, parent = basis.transfer.resident, R.xp.asarray(tree.parent)
    heights[1:] += rows[tree.parent[1:]]
    limit = STACK_ENTRIES[R.xp.__name__] if couplings.evaluated else np.inf
    with phase("weights", max(1, np.count_nonzero(rows))) as advance:
        for l, t in _groups(tree, heights * basis.ranks, limit):
            products = [kind.products(t) for kind in links]
            if l > 0:
                above = weights[l - 1].resident[parent[t] - spans[l - 1].start]
                products.append(Products(above, transfer[t], R.xp.arange(t.stop - t.start + 1), turned=True))
            here = slice(t.start - spans[l].start, t.stop - spans[l].start)
            batched.triangles_of_products(products, weights[l].resident[here])
            del products  # before the next are evaluated
            advance(np.count_nonzero(rows[t]))
    return weights


def _reached(tree, heights):
    """Whether a cluster or one above it has couplings."""
    reached = heights > 0
    for l in range(1, tree.levels):
        t = tree.level(l)
        reached[t] |= reached[tree.parent[t]]
    return reached


def _groups(tree, entries, limit):
    """(level, consecutive clusters of it) of about `limit` entries of products in all; no levels without any."""
    for l in range(tree.levels):
        t = tree.span(l)
        if not entries[t].any():
            continue
        for part in pieces(entries[t], limit):
            yield l, slice(t.start + part.start, t.start + part.stop)


class Links:
    """The couplings S_ts by cluster t (transposed), or by s, and the triangles R_s (R_t) that they meet.

    first    (clusters + 1,) links before each cluster, on the host
    heights  (clusters,) rows of all products of a cluster, on the host

    The numbers of single links are many, and stay where R is.
    """

    def __init__(self, couplings, clusters, R, transpose):
        xp = R.xp
        self.couplings, self.transpose = couplings, transpose
        rows, columns = couplings.pairs(xp)
        if transpose:
            self.index = xp.argsort(rows, kind="stable")
            owner, other = rows[self.index], columns[self.index]
        else:  # couplings are sorted by column
            self.index, owner, other = None, columns, rows
        self.F, self.first_there = R[other], xp.searchsorted(owner, xp.arange(clusters + 1))
        rows_before = offsets_of(self.F.rows)[self.first_there]
        self.first, self.heights = to_host(self.first_there), np.diff(to_host(rows_before))

    def products(self, t):
        """R_s S_tsᵀ (or R_t S_ts) of the clusters of a slice t."""
        span = slice(int(self.first[t.start]), int(self.first[t.stop]))
        S, turned = self.couplings.factors(span if self.index is None else self.index[span], self.transpose)
        first = self.first_there[t.start : t.stop + 1] - span.start
        return Products(self.F[span], S, first, turned, triangular=True)


def _links(couplings, clusters, R, column_side):
    """A stored S_ts of a symmetric matrix also stands for S_st = S_tsᵀ."""
    sides = (True, False) if couplings.symmetric else (not column_side,)
    return [Links(couplings, clusters, R, transpose) for transpose in sides]
