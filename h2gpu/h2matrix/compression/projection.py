"""Couplings in new bases.

S'_ts = T_t S_ts W_sᵀ        T, W the changes of the row and column bases
"""

import math
from itertools import chain, pairwise

import numpy as np

from h2gpu.batched import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.blocksparse import BlockSparse
from h2gpu.h2matrix.compression.together import levels_together
from h2gpu.h2matrix.compression.weights import STACK_ENTRIES
from h2gpu.memory import piece_entries
from h2gpu.progress import phase

FEW = 1 << 14  # couplings of a level that go with those of others: a launch costs more than sizes that differ


def project(couplings, row_basis, col_basis, row_change, col_change):
    """The couplings (BlockSparse or EvaluatedCouplings) in the new bases, as a BlockSparse; some at a time."""
    xp, t, s = row_change.matrices.xp, couplings.rows, couplings.columns
    sides = (t, row_basis.ranks, row_change.matrices.columns), (s, col_basis.ranks, col_change.matrices.columns)
    with phase("project", len(t)) as advance:
        t_where, s_where = couplings.pairs(xp)
        T, W = row_change[t_where], col_change[s_where]
        offsets = offsets_of(T.rows * W.rows)
        room = xp.empty(int(offsets[-1]), row_basis.dtype)
        projected = MatrixBatch.of(room, offsets[:-1], T.rows, W.rows, (T.bounds[0], W.bounds[0]))
        for part in _parts(couplings, col_basis.tree, sides, xp):
            (k, m), (r, n) = (_largest(part, *side) for side in sides)  # ranks differ by level
            out = projected[part].bounded((k, r))
            couplings.triple_products(T[part].bounded((k, m)), part, W[part].bounded((r, n)), out)
            advance(part.stop - part.start)
        if xp is not np:  # their sizes on the host too, worked out there while the device is busy
            projected = projected.with_sizes(row_basis.ranks[t], col_basis.ranks[s])
    return BlockSparse(projected, t, s, row_basis.starts[:-1], col_basis.starts[:-1], couplings.symmetric)


def _parts(couplings, tree, sides, xp):
    """Slices of couplings of one level, or of several levels of few.

    sides   of rows and columns: clusters, new and old ranks. There is room for so many couplings at a time as may be
            evaluated first, and on the CPU
    """
    firsts = np.searchsorted(couplings.columns, tree.level_offsets)
    limit = piece_entries(xp, STACK_ENTRIES) if couplings.evaluated or xp is np else np.inf
    if couplings.evaluated and xp is not np:
        old = [[_largest(slice(*level), *side)[1] for level in pairwise(firsts)] for side in sides]
        firsts = firsts[[0, *(levels.stop for levels in levels_together(np.diff(firsts), np.array(old), limit))]]
    else:
        cuts = np.append(np.diff(firsts), FEW) >= FEW
        cuts[1:] |= cuts[:-1]  # before and behind levels of many
        firsts = np.append(0, firsts[cuts])
    parts = []
    for first, stop in pairwise(firsts.tolist()):
        most = len(couplings)
        if limit < np.inf:
            entries = math.prod(_largest(slice(first, stop), *side)[1] for side in sides)
            most = int(min(limit / max(1, entries), most))
        parts.append(range(first, stop, max(1, most)))
    return [slice(*part) for part in pairwise([*chain(*parts), len(couplings)])]


def _largest(part, clusters, new, old):
    """Bounds on the new and the old ranks of a part of clusters of nearly consecutive numbers."""
    if part.start == part.stop:
        return 0, 0
    some = clusters[part]
    near = slice(some.min(), some.max() + 1)
    return int(new[near].max()), int(old[near].max())
