"""Couplings in new bases.

S'_ts = T_t S_ts W_sᵀ        T, W the changes of the row and column bases
"""

from dataclasses import replace
from itertools import chain, pairwise

import numpy as np

from h2gpu.batched import BlockSparse, MatrixBatch
from h2gpu.batched.ragged import offsets_of
from h2gpu.h2matrix.weights import STACK_ENTRIES
from h2gpu.progress import phase


def project(couplings, row_basis, col_basis, row_change, col_change):
    """The couplings (BlockSparse or EvaluatedCouplings) in the new bases, as a BlockSparse; some at a time."""
    xp, t, s = row_change.matrices.xp, couplings.rows, couplings.columns
    with phase("project", len(t)) as advance:
        t_where, s_where = couplings.pairs(xp)
        projected = _room(row_basis, col_basis, t_where, s_where, xp)
        for part in _parts(couplings, col_basis.tree, row_change.matrices, col_change.matrices):
            T, W = row_change[t_where[part]], col_change[s_where[part]]
            limits = _largest(row_basis.ranks, t[part]), _largest(col_basis.ranks, s[part])  # ranks differ by level
            couplings.triple_products(T, part, W, replace(projected[part], limits=limits))
            advance(part.stop - part.start)
        if xp is not np:  # their sizes on the host too, worked out there while the device is busy
            rows, columns = row_basis.ranks[t], col_basis.ranks[s]
            projected = MatrixBatch(projected.buffer, offsets_of(rows * columns)[:-1], rows, columns)
    return BlockSparse(projected, t, s, row_basis.starts[:-1], col_basis.starts[:-1], couplings.symmetric)


def _room(row_basis, col_basis, t, s, xp):
    """Packed matrices of the couplings' new sizes, whose numbers are where the matrices are."""
    rows, columns = xp.asarray(row_basis.ranks)[t], xp.asarray(col_basis.ranks)[s]
    offsets = offsets_of(rows * columns)
    return MatrixBatch(xp.empty(int(offsets[-1]), row_basis.dtype), offsets[:-1], rows, columns)


def _parts(couplings, tree, T, W):
    """Slices of couplings of one level, and no more at a time than there is room for where they are evaluated first."""
    most = STACK_ENTRIES[T.xp.__name__] // max(1, T.bounds[1] * W.bounds[1])
    if isinstance(couplings, BlockSparse) and T.xp is not np:
        most = len(couplings)
    levels = pairwise(np.searchsorted(couplings.columns, tree.level_offsets).tolist())
    starts = (range(first, stop, max(1, most)) for first, stop in levels)
    return [slice(*part) for part in pairwise([*chain(*starts), len(couplings)])]


def _largest(ranks, clusters):
    """A bound on the ranks of clusters of nearly consecutive numbers."""
    return int(ranks[clusters.min() : clusters.max() + 1].max())
