"""Blocks and samples of their rows → H²-matrix of skeletons.

    U_t from samples of A[candidates of t, farfield of t],     S_ts = A[J_t, J_s],     D_ts = A[t, s]

From the leaves up, all clusters of a level at once. Where the samples come from is a sampler's business: `products`,
`columns`. Boukaram, Liu, Ghysels & Li (2025), arXiv 2506.16759, for the sweep with samples that are products.
"""

import numpy as np

from h2gpu import batched
from h2gpu.batched.core.offsets import ranges
from h2gpu.blocksparse import BlockSparse
from h2gpu.h2matrix.matrix import H2Matrix
from h2gpu.h2matrix.skeletons.interpolative import interpolative
from h2gpu.h2matrix.skeletons.side import Side
from h2gpu.progress import phase

NEVER = np.iinfo(np.int64).max


def dense_blocks(blocks, entries):
    """The nearfield of a BlockTree, its entries in the caller's order of points."""
    t, s = blocks.near
    trees = blocks.row_tree, blocks.col_tree
    sets = [(tree.permutation[ranges(tree.start[c], tree.sizes[c])], tree.sizes[c]) for tree, c in zip(trees, (t, s))]
    D = entries.blocks(*sets[0], *sets[1])
    return BlockSparse(D, t, s, *(tree.start for tree in trees), blocks.symmetric)


def skeletonized(blocks, entries, nearfield, sampler, atol):
    """The H2Matrix of a BlockTree.

    entries     Entries of the matrix
    nearfield   BlockSparse: see dense_blocks
    sampler     rows(side, clusters, candidates, counts) → MatrixBatch of samples of their rows in the farfield;
                settled(…) and coupled(couplings) tell it what was made of them
    atol        ‖·‖_F that a cluster may leave of its samples
    """
    far, symmetric = blocks.far, blocks.symmetric
    sides = [Side(blocks.row_tree, far.ravel() if symmetric else far[0])]
    sides += [] if symmetric else [Side(blocks.col_tree, far[1])]
    when, made = [np.full(len(side.tree), NEVER) for side in sides], []
    levels = max(side.tree.levels for side in sides)
    with phase("skeletons", sum(int(side.used.sum()) for side in sides)) as advance:
        for step, level in enumerate((None, *reversed(range(levels - 1)))):
            for k, side in enumerate(sides):
                t = side.together(level)
                when[k][t] = step
                if len(t):
                    _settle(k, side, t, sampler, atol)
                    advance(len(t))
            here = np.flatnonzero(np.maximum(when[0][far[0]], when[-1][far[1]]) == step)
            couplings = _couplings(sides, *far[:, here], entries, symmetric)
            sampler.coupled(couplings)
            made.append((here, couplings.blocks))
    rows, *cols = [side.basis(entries.dtype, entries.xp) for side in sides]
    cols = cols[0] if cols else rows
    order = np.argsort(np.concatenate([here for here, _ in made]))
    S = batched.join([batch for _, batch in made])[order].packed()
    couplings = BlockSparse(S, *far, rows.starts[:-1], cols.starts[:-1], symmetric)
    return H2Matrix(rows, cols, couplings, nearfield)


def _settle(k, side, t, sampler, atol):
    """Choose skeletons of the clusters t of one step."""
    candidates, counts = side.candidates(t)
    U, ranks, kept = interpolative(sampler.rows(k, side, t, candidates, counts), atol)
    chosen = side.settle(t, candidates, counts, U, ranks, kept)
    sampler.settled(k, side, t, candidates, counts, U, chosen)


def _couplings(sides, t, s, entries, symmetric):
    """S_ts = A[J_t, J_s] at the places of skeletons as they were settled."""
    sets = []
    for side, c in zip((sides[0], sides[-1]), (t, s)):
        positions = side.skeleton[ranges(side.first[c], side.ranks[c])]
        sets += [side.tree.permutation[positions], side.ranks[c]]
    return BlockSparse(entries.blocks(*sets), t, s, sides[0].first, sides[-1].first, symmetric)
