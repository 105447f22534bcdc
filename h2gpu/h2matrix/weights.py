"""Total weights: what the farfield makes of each basis vector.

    Z_t = R-factor of [ R_s S_tsᵀ for all s in row(t) ; Z_parent E_tᵀ ]

Then the rows of t in all farfield blocks of t and of its ancestors are U_t Z_tᵀ Pᵀ with orthonormal P: the singular
values of U_t Z_tᵀ are those of that part of the matrix. Börm, Efficient Numerical Methods for Non-local Operators
(2010), section 6.6.
"""

import numpy as np

from h2gpu import batched
from h2gpu.batched import MatrixBatch
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
    tree, links = basis.tree, _Links(couplings, len(basis.tree), column_side)
    Z = MatrixBatch.empty(_rows(basis, links, R), basis.ranks, R.dtype, R.xp)
    with phase("weights", len(tree)) as advance:
        for l in range(tree.levels):
            clusters = tree.level(l)
            heights = np.diff(offsets_of(R.rows[links.others(clusters)])[offsets_of(links.counts(clusters))])
            work = (heights + basis.ranks[clusters]) * basis.ranks[clusters]
            for part in pieces(work.tolist(), STACK_ENTRIES[R.xp.__name__]):
                t = clusters[part]
                triangles = batched.qr(_stacks(basis, links, R, Z, t), mode="r")
                batched.gather(triangles, np.arange(len(t)), out=Z[t])
                advance(len(t))
    return Z


def _rows(basis, links, R):
    """Rows of every Z_t: what is stacked, or the rank where that is less."""
    tree = basis.tree
    heights = np.add.reduceat(np.append(R.rows[links.other], 0), links.first[:-1])
    heights[links.first[1:] == links.first[:-1]] = 0
    for l in range(tree.levels):
        t = tree.level(l)
        heights[t] = np.minimum(heights[t] + (heights[tree.parent[t]] if l else 0), basis.ranks[t])
    return heights


class _Links:
    """For each cluster of a side, the couplings it takes part in: block, other cluster, whether S is transposed."""

    def __init__(self, couplings, clusters, column_side):
        rows, columns = (couplings.columns, couplings.rows) if column_side else (couplings.rows, couplings.columns)
        block = np.arange(len(couplings))
        transpose = np.full(len(couplings), not column_side)
        if couplings.symmetric:  # a stored S_ts also stands for S_st = S_tsᵀ
            rows, columns = np.concatenate([rows, columns]), np.concatenate([columns, rows])
            block, transpose = np.tile(block, 2), np.concatenate([transpose, ~transpose])
        order = np.lexsort((columns, rows))
        self.couplings, self.other = couplings, columns[order]
        self.block, self.transpose = block[order], transpose[order]
        self.first = offsets_of(np.bincount(rows, minlength=clusters))

    def counts(self, clusters):
        """Couplings of each cluster."""
        return self.first[clusters + 1] - self.first[clusters]

    def span(self, clusters):
        """The couplings of consecutive clusters, as a slice."""
        return slice(self.first[clusters[0]], self.first[clusters[-1] + 1]) if len(clusters) else slice(0, 0)

    def others(self, clusters):
        """The other cluster of each coupling of consecutive clusters."""
        return self.other[self.span(clusters)]


def _stacks(basis, links, R, Z, t):
    """[ R_s S_tsᵀ for all s ; Z_parent E_tᵀ ] of consecutive clusters t of a level."""
    tree, ranks = basis.tree, basis.ranks
    span, counts, others = links.span(t), links.counts(t), links.others(t)
    heirs = t[tree.parent[t] >= 0]
    from_parent = np.where(tree.parent[t] >= 0, Z.rows[tree.parent[t]], 0)

    # Pieces of the stacks, cluster by cluster: its couplings' products, then what its parent hands down.
    owner = np.concatenate([np.repeat(np.arange(len(t)), counts), np.arange(len(t))])
    order = np.argsort(owner, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    heights = np.concatenate([R.rows[others], from_parent])[order]
    parts = MatrixBatch.empty(heights, ranks[t][owner[order]], R.dtype, R.xp)
    products = parts[place[: len(others)]]
    links.couplings.left_products(R[others], links.block[span], links.transpose[span], products)
    if len(heirs):
        batched.gemm(Z[tree.parent[heirs]], basis.transfer[heirs], transb=True, out=parts[place[len(others) :]])
    return parts.stacked(counts + 1)
