"""Matrices of two batches put together: [A_b B_b], and [A_b 0; 0 B_b].

Packed matrices have their rows one after the other, so that two of them stand above each other without a gap; side by
side stand their transposes.
"""

import numpy as np

from h2gpu import batched
from h2gpu.batched import MatrixBatch


def alternating(a, b):
    """a_0, b_0, a_1, b_1, …"""
    return np.stack([a, b], axis=1).ravel()


def stacked(A, B, turned=False):
    """[A_b; B_b], or [A_bᵀ; B_bᵀ], of two batches of as many columns (rows)."""
    heights = (A.columns, B.columns) if turned else (A.rows, B.rows)
    out = MatrixBatch.empty(sum(heights), A.rows if turned else A.columns, A.dtype, A.xp)
    halves = out.halves(alternating(*heights))
    for i, M in enumerate((A, B)):
        batched.gather(M, np.arange(len(M)), turned, halves[i::2])
    return out


def side_by_side(A, B):
    """[A_b B_b] of two batches of as many rows."""
    return batched.transpose(stacked(A, B, turned=True))


def block_diagonal(A, B):
    """[A_b 0; 0 B_b]."""

    def zeros(rows, columns):
        return MatrixBatch.zeros(rows, columns, A.dtype, A.xp)

    return stacked(side_by_side(A, zeros(A.rows, B.columns)), side_by_side(zeros(B.rows, A.columns), B))
