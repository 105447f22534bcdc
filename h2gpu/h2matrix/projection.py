"""Couplings in new bases.

S'_ts = T_t S_ts W_sᵀ        T, W the changes of the row and column bases
"""

from dataclasses import replace

from h2gpu.batched import BlockSparse, MatrixBatch
from h2gpu.batched.threads import pieces
from h2gpu.h2matrix.weights import STACK_ENTRIES
from h2gpu.progress import phase


def project(couplings, row_basis, col_basis, row_change, col_change):
    """The couplings (BlockSparse or EvaluatedCouplings) in the new bases, as a BlockSparse; a chunk at a time."""
    t, s = couplings.rows, couplings.columns
    xp = row_change.matrices.xp
    projected = MatrixBatch.empty(row_basis.ranks[t], col_basis.ranks[s], row_basis.dtype, xp)
    work = row_change.matrices.columns[t] * col_change.matrices.columns[s]
    t_where, s_where = couplings.pairs(xp)
    with phase("project", len(t)) as advance:
        for part in pieces(work, STACK_ENTRIES[xp.__name__]):
            T, W = row_change[t_where[part]], col_change[s_where[part]]
            out = replace(projected.resident[part], limits=projected[part].bounds)  # ranks differ by level
            couplings.triple_products(T, part, W, out)
            advance(part.stop - part.start)
    return BlockSparse(projected, t, s, row_basis.starts[:-1], col_basis.starts[:-1], couplings.symmetric)
