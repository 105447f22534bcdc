"""Total weights: what the farfield makes of each basis vector.

    Z_t = R-factor of [ R_s S_tsᵀ for all s in row(t) ; Z_parent E_tᵀ ]

Then the rows of t in all farfield blocks of t and of its ancestors are U_t Z_tᵀ Pᵀ with orthonormal P: the singular
values of U_t Z_tᵀ are those of that part of the matrix. Börm, Efficient Numerical Methods for Non-local Operators
(2010), section 6.6.
"""

import numpy as np

from h2gpu import batched
from h2gpu.batched import MatrixBatch
from h2gpu.batched.arrays import to_host
from h2gpu.batched.ragged import offsets_of
from h2gpu.batched.threads import pieces
from h2gpu.progress import phase

STACK_ENTRIES = {"numpy": 1 << 22, "cupy": 1 << 26}  # of a stack at a time: bounds the memory, fills the device


def total_weights(basis, couplings, R, column_side=False):
    """Z_t of every cluster of one side, min(stack rows, rank) × rank, as a MatrixBatch in cluster order.

    basis         the side's ClusterBasis (rows, unless column_side)
    couplings     BlockSparse or EvaluatedCouplings
    R             triangular factors of the other side's basis (of the same, when symmetric)
    """
    tree, links = basis.tree, _links(couplings, len(basis.tree), R, column_side)
    coupled = sum(kind.heights for kind in links)
    Z = MatrixBatch.empty(_rows(basis, coupled), basis.ranks, R.dtype, R.xp)
    heights = coupled + np.where(tree.parent >= 0, Z.rows[tree.parent], 0)
    entries = heights * basis.ranks
    groups = [
        tree.level(l)[part]
        for l in range(tree.levels)
        for part in pieces(entries[tree.level(l)], STACK_ENTRIES[R.xp.__name__])
    ]
    room = R.xp.empty(max(int(entries[t].sum()) for t in groups), R.dtype)  # for all stacks, one after the other
    with phase("weights", len(tree)) as advance:
        for t in groups:
            stacks = MatrixBatch(room, offsets_of(entries[t])[:-1], heights[t], basis.ranks[t])
            _fill(stacks, basis, links, R, Z, t)
            triangles = batched.qr(stacks, mode="r")
            batched.gather(triangles, np.arange(len(t)), out=Z[t])
            advance(len(t))
    return Z


def _rows(basis, coupled):
    """Rows of every Z_t: what is stacked, or the rank where that is less."""
    tree, rows = basis.tree, coupled.copy()
    for l in range(tree.levels):
        t = tree.level(l)
        rows[t] = np.minimum(rows[t] + (rows[tree.parent[t]] if l else 0), basis.ranks[t])
    return rows


class Links:
    """The couplings S_ts by cluster t (transposed), or by s, and what is known of their products R_s S_tsᵀ (R_t S_ts).

    first    (clusters + 1,) links before each cluster, on the host
    before   (clusters + 1,) rows of all products before those of each cluster, on the host
    heights  (clusters,) rows of all products of a cluster, on the host

    The numbers of single links are many, and stay where R is.
    """

    def __init__(self, couplings, clusters, R, transpose):
        xp = R.xp
        self.couplings, self.transpose = couplings, transpose
        rows, columns = couplings.pairs(xp)
        if transpose:
            self.index = xp.argsort(rows, kind="stable")
            self.owner, self.other = rows[self.index], columns[self.index]
        else:  # couplings are sorted by column
            self.index, self.owner, self.other = None, columns, rows
        first = xp.searchsorted(self.owner, xp.arange(clusters + 1))
        self.link_before = offsets_of(R[self.other].rows)
        self.first, self.before = to_host(first), to_host(self.link_before[first])
        self.heights = np.diff(self.before)

    def multiply_into(self, stacks, above, R, t):
        """R_s S_tsᵀ of consecutive clusters t into their stacks, `above` rows from the top of each."""
        span = slice(self.first[t[0]], self.first[t[-1] + 1])
        F, owner = R[self.other[span]], self.owner[span] - t[0]
        origin = stacks.offsets + (above - self.before[t]) * stacks.columns
        origin, columns = (R.xp.asarray(numbers)[owner] for numbers in (origin, stacks.columns))
        offsets = origin + self.link_before[span] * columns
        products = MatrixBatch(stacks.buffer, offsets, F.rows, columns, (F.bounds[0], stacks.bounds[1]))
        self.couplings.left_products(F, span if self.index is None else self.index[span], self.transpose, products)


def _links(couplings, clusters, R, column_side):
    """A stored S_ts of a symmetric matrix also stands for S_st = S_tsᵀ."""
    sides = (True, False) if couplings.symmetric else (not column_side,)
    return [Links(couplings, clusters, R, transpose) for transpose in sides]


def _fill(stacks, basis, links, R, Z, t):
    """[ R_s S_tsᵀ for all s ; Z_parent E_tᵀ ] of consecutive clusters t of a level, into their places."""
    above = np.zeros(len(t), np.int64)
    for kind in links:
        kind.multiply_into(stacks, above, R, t)
        above += kind.heights[t]
    parent = basis.tree.parent[t]
    if parent[0] >= 0:
        last = MatrixBatch(stacks.buffer, stacks.offsets + above * stacks.columns, Z.rows[parent], stacks.columns)
        batched.gemm(Z[parent], basis.transfer[t], transb=True, out=last)
