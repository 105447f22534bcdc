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

STACK_ENTRIES = {"numpy": 1 << 22, "cupy": 1 << 27}  # of a stack at a time: bounds the memory, fills the device


def total_weights(basis, couplings, R, column_side=False):
    """Z_t of every cluster of one side, min(stack rows, rank) × rank, as a MatrixBatch in cluster order.

    basis         the side's ClusterBasis (rows, unless column_side)
    couplings     BlockSparse or EvaluatedCouplings
    R             triangular factors of the other side's basis (of the same, when symmetric)
    """
    tree, links = basis.tree, _Links(couplings, len(basis.tree), column_side)
    levels, above = [], None
    with phase("weights", len(tree)) as advance:
        for l in range(tree.levels):
            clusters = tree.level(l)
            counts = links.counts(clusters)
            heights = offsets_of(R.rows[links.others(clusters)])[offsets_of(counts)]
            work = (np.diff(heights) + basis.ranks[clusters]) * basis.ranks[clusters]
            parts = []
            for part in pieces(work.tolist(), STACK_ENTRIES[R.xp.__name__]):
                parts.append(_level_part(basis, links, R, above, clusters[part]))
                advance(len(clusters[part]))
            above = MatrixBatch.concatenated(parts)
            levels.append(above)
    return MatrixBatch.concatenated(levels)


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


def _level_part(basis, links, R, above, clusters):
    """Z of consecutive clusters of a level: one product for all couplings, one for all parents, one QR."""
    tree, ranks = basis.tree, basis.ranks
    span, counts, others = links.span(clusters), links.counts(clusters), links.others(clusters)
    parents = tree.parent[clusters]
    heirs = parents >= 0
    position = parents[heirs] - tree.level_offsets[np.searchsorted(tree.level_offsets, parents[heirs], "right") - 1]
    from_parent = np.zeros(len(clusters), np.int64)
    from_parent[heirs] = above.rows[position] if above is not None else 0

    # Pieces of the stacks, cluster by cluster: its couplings' products, then what its parent hands down.
    owner = np.concatenate([np.repeat(np.arange(len(clusters)), counts), np.arange(len(clusters))])
    order = np.argsort(owner, kind="stable")
    heights = np.concatenate([R.rows[others], from_parent])[order]
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    stack = MatrixBatch.empty(heights, ranks[clusters][owner[order]], R.dtype, R.xp)
    S = links.couplings.select(links.block[span], links.transpose[span])
    batched.gemm(R[others], S, out=stack[place[: len(others)]])
    if above is not None:
        own = stack[place[len(others) :][heirs]]
        batched.gemm(above[position], basis.transfer[clusters[heirs]], transb=True, out=own)
    return batched.qr(stack.stacked(counts + 1), mode="r")
