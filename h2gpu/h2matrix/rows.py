"""What some rows of an H²-matrix are made of.

    e_iᵀ A = Σ_s e_iᵀ D_ts + Σ_t Σ_s e_iᵀ U_t S_ts V_sᵀ        t the clusters from the leaf of point i to the root

A product with unit vectors reads all blocks, though few meet the rows: 64 of 2^17 meet about one coupling in six.
"""

from dataclasses import replace

import numpy as np

WORTHWHILE = {"numpy": 0.5, "cupy": 0.0}  # part of the blocks up to which they are picked; a GPU reads all sooner
ROWS_TOGETHER = {"numpy": 16, "cupy": 64}  # of a product with unit vectors,
ENTRIES_TOGETHER = {"numpy": 1 << 26, "cupy": 1 << 24}  # and of its vectors: kernels read the matrix once for 16


def together(n, xp):
    """How many rows are worked out at a time, by products of vectors of n entries, the longer side's."""
    return max(1, min(ROWS_TOGETHER[xp.__name__], ENTRIES_TOGETHER[xp.__name__] // n))


def meeting(A, rows):
    """The H2Matrix of the blocks of A that meet the given rows, in which it has A's entries; others are anything.

    A itself where there would be nearly all.
    """
    most = WORTHWHILE[A.xp.__name__]
    if not most:
        return A
    tree = A.row_basis.tree
    place = np.empty(tree.n, np.int64)
    place[tree.permutation] = np.arange(tree.n)
    path, met = tree.path(place[rows]), np.zeros(len(tree), bool)
    met[path[path >= 0]] = True
    parts = {}
    for name in ("couplings", "nearfield"):
        blocks = getattr(A, name)
        chosen = np.flatnonzero(met[blocks.rows] | (met[blocks.columns] if A.symmetric else False))
        parts[name] = blocks.part(chosen) if len(chosen) <= most * len(blocks) else blocks
    return replace(A, **parts)
