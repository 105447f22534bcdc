"""Total weights: what the farfield makes of each basis vector.

    Z_tᵀ Z_t = Σ_s (R_s S_tsᵀ)ᵀ R_s S_tsᵀ + (Z_parent E_tᵀ)ᵀ Z_parent E_tᵀ          for all s in row(t)

Then the rows of t in all farfield blocks of t and of its ancestors are U_t Z_tᵀ Pᵀ with orthonormal P: the singular
values of U_t Z_tᵀ are those of that part of the matrix. Börm, Efficient Numerical Methods for Non-local Operators
(2010), section 6.6.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from h2gpu import batched
from h2gpu.arrays import moved
from h2gpu.batched import MatrixBatch, Products
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.batched.device.threads import CACHED, in_order, pieces
from h2gpu.h2matrix.compression.together import levels_together
from h2gpu.memory import piece_entries
from h2gpu.progress import phase

STACK_ENTRIES = 1 << 22  # of couplings evaluated at a time on the CPU,
AT_ONCE = 4  # by so many groups of clusters: threads take one each


def total_weights(basis, couplings, R, column_side=False):
    """Z_t of the clusters, a list of MatrixBatches by level: rank × rank, or without rows where there is no farfield.

    basis         the side's ClusterBasis (rows, unless column_side)
    couplings     BlockSparse or EvaluatedCouplings
    R             triangular factors of the other side's basis (of the same, when symmetric)
    """
    tree, links = basis.tree, _links(couplings, basis, R, column_side)
    counts = sum(kind.counts for kind in links)
    rows, spans = np.where(_reached(tree, counts), basis.ranks, 0), [tree.span(l) for l in range(tree.levels)]
    weights = [MatrixBatch.empty(rows[t], basis.ranks[t], R.dtype, R.xp) for t in spans[::-1]][::-1]  # largest first
    inherited = _inherited(basis, weights, rows)
    MatrixBatch.place(*weights, inherited.F, basis.transfer)
    above = [replace(inherited.F.resident, buffer=Z.buffer).bounded(Z.bounds) for Z in weights[:-1]]

    def weigh(group):
        parts = [kind.part(group) for kind in links]
        for l, t in group:
            products, top = [part.products(t, l) for part in parts], spans[l].start
            if l:
                products.append(_of_parents(inherited, above[l - 1], t))
            batched.triangles_of_products(products, weights[l][t.start - top : t.stop - top])

    with phase("weights", max(1, np.count_nonzero(rows))) as advance:
        for groups in _steps(basis, links, inherited.F.rows, couplings.evaluated, R.xp):
            for _, group in zip(in_order(weigh, groups, R.xp), groups):  # in this order: to its end
                advance(sum(np.count_nonzero(rows[t]) for _, t in group))
    return weights


def _steps(basis, links, heights, evaluated, xp):
    """Lists of groups of clusters, each list for when those before it are done with.

    A group is a list of (level, slice of its clusters), whose couplings are evaluated together if they have to be. On
    the CPU threads take a level's groups; a GPU's may have several levels, for small ones cost the host as much.

    heights   rows of the parents' Z, (clusters,)
    """
    tree, limit = basis.tree, piece_entries(xp, STACK_ENTRIES // AT_ONCE) if evaluated else np.inf
    met = sum(kind.counts * np.repeat(kind.most, np.diff(tree.level_offsets)) for kind in links)
    entries = (met + heights) * basis.ranks  # of a cluster's products, at most
    steps = [[[(l, t)] for t in _slices(tree.span(l), entries, limit)] for l in range(tree.levels)]
    return [_joined(steps, basis, links, limit)] if evaluated and xp is not np else steps


def _joined(steps, basis, links, limit):
    """The groups of all levels; those of levels that go together are one."""
    tree, groups = basis.tree, []
    counts = np.diff(sum(kind.first[tree.level_offsets] for kind in links))
    ranks = [basis.ranks[tree.span(l)].max(initial=0) for l in range(tree.levels)]
    for levels in levels_together(counts, np.stack([np.max([kind.most for kind in links], axis=0), ranks]), limit):
        found = [group for step in steps[levels] for group in step]
        whole = all(len(step) <= 1 for step in steps[levels])
        groups += [[part for group in found for part in group]] if whole and found else found
    return groups


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


def _slices(t, entries, limit):
    """Consecutive clusters of a level, a slice t, of about `limit` entries of products in all; none without any."""
    if not entries[t].any():
        return []
    if limit == np.inf:
        return [t]
    parts = pieces(entries[t], limit)
    return [slice(t.start + part.start, t.start + part.stop) for part in parts]


class Links:
    """The couplings S_ts by cluster t (transposed), or by s, and the triangles R_s (R_t) that they meet.

    counts   (clusters,) links of each cluster, on the host
    first    (clusters + 1,) links before each, there too, and `first_there` where R is
    most     (levels,) rank that no R_s exceeds which the clusters of a level meet
    heights  (clusters,) rows of all R_s

    The numbers of single links are many, and stay where R is.
    """

    def __init__(self, couplings, basis, R, transpose, met):
        xp = R.xp
        self.couplings, self.transpose, self.ranks, self.heights = couplings, transpose, basis.ranks, R.rows
        self.counts, self.most, self.first, self.first_there = met
        rows, columns = couplings.pairs(xp)
        self.index = xp.argsort(rows, kind="stable") if transpose else None  # couplings are sorted by column
        self.F = R[columns[self.index] if transpose else rows]
        self.all = None if couplings.evaluated else self._made(self.F, slice(None), self.first_there, None)

    def part(self, group):
        """The Part of a group of clusters, a list of (level, slice)."""
        if self.all:
            return Part(self, self.all)
        t, levels = slice(group[0][1].start, group[-1][1].stop), [l for l, _ in group]
        first, span = self.first_there[t.start : t.stop + 1], slice(*self.first[[t.start, t.stop]].tolist())
        bounds = int(self.most[levels].max()), int(self.ranks[t].max(initial=0))
        return Part(self, self._made(self.F[span], span, first - span.start, bounds), t.start, span.start)

    @cached_property
    def rows_before(self):
        """Rows of the R that the clusters before each one meet, (clusters + 1,), on the host."""
        met, clusters = owners_and_others(self.couplings, self.transpose), len(self.counts)
        rows = sum(np.bincount(owners, self.heights.take(others), clusters) for owners, others in met)
        return offsets_of(rows.astype(np.int64))

    def _made(self, F, span, first, bounds):
        """The products of a slice of links, given their F, where their segments begin, and bounds of S (or Sᵀ)."""
        index = span if self.index is None else self.index[span]
        S, turned = self.couplings.factors(index, self.transpose, bounds)
        return Products(F, S, first, turned, triangular=True)


@dataclass(frozen=True, eq=False)
class Part:
    """Links of consecutive clusters with their S.

    made    Products, a segment a cluster
    start   the first of the clusters, and how many links come before theirs
    """

    links: Links
    made: Products
    start: int = 0
    before: int = 0

    def products(self, t, l):
        """R_s S_tsᵀ (or R_t S_ts) of the clusters of a slice t of level l.

        Their own bounds, narrower than those of all, let small matrices of fine levels take the way of small ones.
        """
        links, made, most = self.links, self.made, int(self.links.most[l])
        first, S = made.first[t.start - self.start : t.stop - self.start + 1], made.S
        if not links.all:
            sides = most, int(links.ranks[t].max(initial=0))
            S = S.bounded(sides[:: -1 if made.turned else 1])

        def on_host():
            return links.first[t.start : t.stop + 1] - self.before, links.rows_before[t.start : t.stop + 1]

        return replace(made, F=made.F.bounded((most, most)), S=S, first=first, on_host=on_host)


def _met(couplings, basis, ranks, sides):
    """Of each of the sides, `transpose` of Links: its counts, most, first and first_there; `ranks` of all others.

    Where no coupling leaves its level, as in most trees, the clusters that are met on a level are those that have links
    of the other kind: nothing is looked up by coupling.
    """
    tree, xp = basis.tree, basis.leaf.xp
    if couplings.symmetric and _keeps_levels(couplings, tree):
        rows, columns = (np.bincount(pair, minlength=len(tree)) for pair in (couplings.rows, couplings.columns))
        counts, met = zip(*((rows, columns) if transpose else (columns, rows) for transpose in sides))
        most = [np.maximum.reduceat(np.where(links > 0, ranks, 0), tree.level_offsets[:-1]) for links in met]
    else:
        met = [owners_and_others(couplings, transpose) for transpose in sides]
        counts = [sum(np.bincount(owners, minlength=len(tree)) for owners, _ in parts) for parts in met]
        most = [_most_met(basis, parts, ranks) for parts in met]
    firsts = [offsets_of(count) for count in counts]
    return zip(counts, most, firsts, [moved(first, xp) for first in firsts])


def owners_and_others(couplings, transpose):
    """[(owners, others)] of couplings on the host, in parts: the clusters of Links, and those that they meet."""
    return [pair[:: 1 if transpose else -1] for pair in couplings.counted()]


def _keeps_levels(couplings, tree):
    """Whether both clusters of each coupling are of one level of the tree; columns ascend."""
    cuts = np.searchsorted(couplings.columns, tree.level_offsets)
    for part, (first, stop) in zip(pairwise(cuts.tolist()), pairwise(tree.level_offsets)):
        rows = couplings.rows[slice(*part)]
        if len(rows) and not (first <= rows.min() and rows.max() < stop):
            return False
    return True


def _most_met(basis, met, ranks):
    """(levels,) the largest of the ranks of others that the owners on a level meet; `ranks` of all the others."""
    tree, width = basis.tree, int(ranks.max(initial=0)) + 1
    row = np.repeat(np.arange(tree.levels) * width, np.diff(tree.level_offsets))
    found = np.zeros(tree.levels * width, bool)
    for owners, others in met:
        for first in range(0, len(owners), CACHED):  # all at once would be new pages
            part = slice(first, first + CACHED)
            found[row.take(owners[part]) + ranks.take(others[part])] = True
    return np.where(found.reshape(tree.levels, width), np.arange(width), 0).max(axis=1)


def _links(couplings, basis, R, column_side):
    """A stored S_ts of a symmetric matrix also stands for S_st = S_tsᵀ.

    On the CPU both are evaluated where that is possible: of all blocks of a cluster at once.
    """
    if R.xp is np and hasattr(couplings, "unfolded"):
        couplings = couplings.unfolded()
    return links_of(couplings, basis, R, (True, False) if couplings.symmetric else (not column_side,))


def links_of(couplings, basis, R, sides):
    """Links for each of the sides, `transpose` of each."""
    met = _met(couplings, basis, R.columns, sides)
    return [Links(couplings, basis, R, transpose, found) for transpose, found in zip(sides, met)]
