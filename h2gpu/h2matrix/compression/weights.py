"""Total weights: what the farfield makes of each basis vector.

    Z_tᵀ Z_t = Σ_s (R_s S_tsᵀ)ᵀ R_s S_tsᵀ + (Z_parent E_tᵀ)ᵀ Z_parent E_tᵀ          for all s in row(t)

Then the rows of t in all farfield blocks of t and of its ancestors are U_t Z_tᵀ Pᵀ with orthonormal P: the singular
values of U_t Z_tᵀ are those of that part of the matrix. Börm, Efficient Numerical Methods for Non-local Operators
(2010), section 6.6.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np

from h2gpu import batched
from h2gpu.arrays import moved
from h2gpu.batched import MatrixBatch, Products
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.batched.device.threads import in_order, pieces
from h2gpu.progress import phase

STACK_ENTRIES = {"numpy": 1 << 22, "cupy": 1 << 25}  # of couplings evaluated at a time: bounds the memory
AT_ONCE = {"numpy": 4, "cupy": 1}  # groups of clusters that have them: threads take one each
WIDE, WIDE_STACKS = 64, 2  # rank beyond which the GPU stores products; of so many times as many their QR fills it


def total_weights(basis, couplings, R, column_side=False):
    """Z_t of the clusters, a list of MatrixBatches by level: rank × rank, or without rows where there is no farfield.

    basis         the side's ClusterBasis (rows, unless column_side)
    couplings     BlockSparse or EvaluatedCouplings
    R             triangular factors of the other side's basis (of the same, when symmetric)
    """
    tree, links = basis.tree, _links(couplings, basis, R, column_side)
    counts = sum(np.diff(kind.first) for kind in links)
    rows, spans = np.where(_reached(tree, counts), basis.ranks, 0), [tree.span(l) for l in range(tree.levels)]
    weights = [MatrixBatch.empty(rows[t], basis.ranks[t], R.dtype, R.xp) for t in spans[::-1]][::-1]  # largest first
    inherited = _inherited(basis, weights, rows)
    MatrixBatch.place(*weights, inherited.F, basis.transfer)
    met = sum(np.diff(kind.first) * np.repeat(kind.most, np.diff(tree.level_offsets)) for kind in links)
    entries = (met + inherited.F.rows) * basis.ranks  # of a cluster's products, at most
    with phase("weights", max(1, np.count_nonzero(rows))) as advance:
        for l, span in enumerate(spans):
            limit = _limit(weights[l], [kind.most[l] for kind in links]) if couplings.evaluated else np.inf
            above = replace(inherited.F.resident, buffer=weights[l - 1].buffer) if l else None
            above = above and above.bounded(weights[l - 1].bounds)

            def weigh(t, Z=weights[l], l=l, top=span.start, above=above):
                products = [kind.products(t, l) for kind in links]
                if above is not None:
                    products.append(_of_parents(inherited, above, t))
                batched.triangles_of_products(products, Z[t.start - top : t.stop - top])

            groups = _groups(span, entries, limit)
            for _, t in zip(in_order(weigh, groups, R.xp), groups):  # in this order: to its end
                advance(np.count_nonzero(rows[t]))
    return weights


def _limit(Z, met):
    """Entries of products at a time, of a level of weights Z whose clusters meet others of at most these ranks."""
    wide = Z.xp is not np and max(Z.bounds[1], *met) > WIDE
    return STACK_ENTRIES[Z.xp.__name__] // AT_ONCE[Z.xp.__name__] * (WIDE_STACKS if wide else 1)


def _inherited(basis, weights, rows):
    """Z_parent E_tᵀ of all clusters; F lies in the buffer of the level above."""
    parent, offsets = basis.tree.parent, np.concatenate([Z.offsets for Z in weights])
    above = np.where(parent >= 0, rows[parent], 0)
    F = MatrixBatch(weights[0].buffer, offsets[parent], above, basis.ranks[parent])
    return Products(F, basis.transfer, basis.leaf.xp.arange(len(rows) + 1), turned=True)


def _of_parents(inherited, above, t):
    """The same of a slice t of clusters, whose parents' Z are `above`."""

    def on_host():
        return np.arange(t.start, t.stop + 1), offsets_of(inherited.F.rows[t])

    return replace(inherited, F=above, first=inherited.first[t.start : t.stop + 1], on_host=on_host)


def _reached(tree, counts):
    """Whether a cluster or one above it has couplings."""
    reached = counts > 0
    for l in range(1, tree.levels):
        t = tree.span(l)
        reached[t] |= reached[tree.parent[t]]
    return reached


def _groups(t, entries, limit):
    """Consecutive clusters of a level, a slice t, of about `limit` entries of products in all; none without any."""
    parts = pieces(entries[t], limit) if entries[t].any() else []
    return [slice(t.start + part.start, t.start + part.stop) for part in parts]


class Links:
    """The couplings S_ts by cluster t (transposed), or by s, and the triangles R_s (R_t) that they meet.

    first    (clusters + 1,) links before each cluster, on the host
    most     (levels,) rank that no R_s exceeds which the clusters of a level meet
    heights  (clusters,) rows of all R_s

    The numbers of single links are many, and stay where R is.
    """

    def __init__(self, couplings, basis, R, transpose):
        xp = R.xp
        self.couplings, self.transpose, self.ranks = couplings, transpose, basis.ranks
        self.owners, self.others = (couplings.rows, couplings.columns)[:: 1 if transpose else -1]
        self.first = offsets_of(np.bincount(self.owners, minlength=len(basis.tree)))
        self.heights, self.most = R.rows, _most_met(basis, self.owners, R.columns, self.others)
        self.first_there = moved(self.first, xp)
        rows, columns = couplings.pairs(xp)
        self.index = xp.argsort(rows, kind="stable") if transpose else None  # couplings are sorted by column
        self.F = R[columns[self.index] if transpose else rows]
        self.all = None if couplings.evaluated else self._made(self.F, slice(None), self.first_there, None)

    def products(self, t, l):
        """R_s S_tsᵀ (or R_t S_ts) of the clusters of a slice t of level l.

        Their own bounds, narrower than those of all, let small matrices of fine levels take the way of small ones.
        """
        first, span = self.first_there[t.start : t.stop + 1], slice(*self.first[[t.start, t.stop]].tolist())
        sides = int(self.most[l]), int(self.most[l])

        def on_host(before=0 if self.all else span.start):
            return self.first[t.start : t.stop + 1] - before, self.rows_before[t.start : t.stop + 1]

        if self.all:
            return replace(self.all, F=self.all.F.bounded(sides), first=first, on_host=on_host)
        bounds = sides[0], int(self.ranks[t].max(initial=0))
        made = self._made(self.F[span].bounded(sides), span, first - span.start, bounds)
        return replace(made, on_host=on_host)

    @cached_property
    def rows_before(self):
        """Rows of the R that the clusters before each one meet, (clusters + 1,), on the host."""
        rows = np.bincount(self.owners, self.heights.take(self.others), minlength=len(self.first) - 1)
        return offsets_of(rows.astype(np.int64))

    def _made(self, F, span, first, bounds):
        """The products of a slice of links, given their F, where their segments begin, and bounds of S (or Sᵀ)."""
        index = span if self.index is None else self.index[span]
        S, turned = self.couplings.factors(index, self.transpose, bounds)
        return Products(F, S, first, turned, triangular=True)


def _most_met(basis, owners, ranks, others):
    """(levels,) the largest of the ranks of others that the owners on a level meet; `ranks` of all the others."""
    tree, width = basis.tree, int(ranks.max(initial=0)) + 1
    row = np.repeat(np.arange(tree.levels) * width, np.diff(tree.level_offsets))
    counts = np.bincount(row.take(owners) + ranks.take(others), minlength=tree.levels * width)
    return np.where(counts.reshape(tree.levels, width), np.arange(width), 0).max(axis=1)


def _links(couplings, basis, R, column_side):
    """A stored S_ts of a symmetric matrix also stands for S_st = S_tsᵀ.

    On the CPU both are evaluated where that is possible: of all blocks of a cluster at once.
    """
    if R.xp is np and hasattr(couplings, "unfolded"):
        couplings = couplings.unfolded()
    sides = (True, False) if couplings.symmetric else (not column_side,)
    return [Links(couplings, basis, R, transpose) for transpose in sides]
