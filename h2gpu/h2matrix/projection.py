"""Couplings in new bases.

S'_ts = T_t S_ts W_sᵀ        T, W the changes of the row and column bases
"""

import numpy as np

from h2gpu import batched
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
    with phase("project", len(t)) as advance:
        for part in pieces(work.tolist(), STACK_ENTRIES[xp.__name__]):
            index = np.arange(part.start, min(part.stop, len(t)))
            TS = MatrixBatch.empty(row_basis.ranks[t[part]], col_change.matrices.columns[s[part]], row_basis.dtype, xp)
            couplings.left_products(row_change[t[part]], index, False, TS)
            batched.gemm(TS, col_change[s[part]], transb=True, out=projected[part])
            advance(len(index))
    return BlockSparse(projected, t, s, row_basis.starts[:-1], col_basis.starts[:-1], couplings.symmetric)
