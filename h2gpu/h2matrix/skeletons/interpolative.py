"""Rows that stand for all rows: interpolative decompositions of a batch, by QR with column pivoting of the transposes.

    Y ≈ U Y[J],   U[J] = I          from   Yᵀ[:, p] = Q [R₁ R₂] + E,   J the first of p,   U[p] = (R₁⁻¹ [R₁ R₂])ᵀ

Cheng, Gimbutas, Martinsson & Rokhlin (2005), On the compression of low rank matrices.
"""

import numpy as np

from h2gpu import batched
from h2gpu.arrays import to_host
from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of, ranges


def interpolative(Y, atol):
    """U, ranks and kept of every matrix m × samples, so that ‖Y_b − U_b Y_b[J_b]‖_F is about atol.

    U       MatrixBatch, m × rank
    ranks   (batch,) on the host
    kept    (Σ ranks,) on the host: numbers of the rows J_b of each matrix, one matrix after the other
    """
    R, pivots, ranks = batched.pivoted_qr(batched.transpose(Y), atol, mode="r")
    T = batched.transpose(batched.trsm(batched.leading(R, ranks, ranks), R, lower=False))  # rows in the order of pivots
    pivots = to_host(pivots.entries)
    first = np.concatenate([[0], np.cumsum(T.rows)[:-1]])  # row of each matrix among all rows
    kept = pivots[ranges(first, ranks)]
    order = np.empty(len(pivots), np.int64)
    order[np.repeat(first, T.rows) + pivots] = np.arange(len(pivots))
    width = np.repeat(T.columns, T.rows)
    U = MatrixBatch(T.buffer, offsets_of(width)[:-1][order], np.ones_like(width), width).packed()  # its rows
    return MatrixBatch(U.buffer, T.offsets, T.rows, T.columns), ranks, kept
