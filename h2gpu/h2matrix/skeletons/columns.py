"""Samples that are columns: of a cluster's farfield some points, chosen at random and weighted by what they stand for.

Half of a cluster's columns come from its own farfield blocks, as many from each; the others from the columns of its
parent. Points near by, which matter most, are so met more densely than those far away.
"""

import numpy as np

from h2gpu.batched.core.offsets import offsets_of, ranges

HALF = 2


class Columns:
    """A sampler for `skeletonized`.

    blocks    BlockTree
    entries   Entries of the matrix
    count     columns of a cluster, about
    rng       numpy Generator
    """

    norm_of_one = 1.0  # by the weights

    def __init__(self, blocks, entries, count, rng):
        self.entries = entries
        t, s = blocks.far
        if blocks.symmetric:
            pairs = np.concatenate([t, s]), np.concatenate([s, t])
            self.chosen = [_chosen(blocks.row_tree, blocks.row_tree, *pairs, count, rng)]
        else:
            self.chosen = [
                _chosen(blocks.row_tree, blocks.col_tree, t, s, count, rng),
                _chosen(blocks.col_tree, blocks.row_tree, s, t, count, rng),
            ]
        self.others = [blocks.col_tree, blocks.row_tree]

    def rows(self, k, side, t, candidates, counts):
        """Weighted columns of the candidates' rows: ‖·‖_F² is about that of their whole farfield."""
        first, columns, weights = self.chosen[k]
        widths = np.diff(first)[t]
        places = ranges(first[t], widths)
        mine = side.tree.permutation[side.positions(t, candidates)], counts
        theirs = self.others[k].permutation[columns[places]], widths
        Y = (self.entries.transposed() if k else self.entries).blocks(*mine, *theirs)
        per_entry = weights[places][ranges(np.repeat(offsets_of(widths)[:-1], counts), np.repeat(widths, counts))]
        Y.buffer[...] *= Y.xp.asarray(per_entry, Y.dtype)
        return Y

    def settled(self, *_):
        """Nothing is to be learnt."""

    def coupled(self, *_):
        """Nothing either."""


def _chosen(tree, other, t, s, count, rng):
    """first (clusters + 1,), and positions of columns and their weights, flat, of all clusters from the root down."""
    order = np.argsort(t, kind="stable")
    t, s = t[order], s[order]
    before = np.searchsorted(t, np.arange(len(tree) + 1))
    blocks = np.diff(before)
    each = np.minimum(-(-(count // HALF) // blocks[t]), other.sizes[s])  # columns of each block, one of each part
    own = np.concatenate([[0], np.cumsum(each)])
    part = (ranges(np.zeros_like(each), each) + rng.random(own[-1])) / np.repeat(np.maximum(each, 1), each)
    columns = np.repeat(other.start[s], each) + (part * np.repeat(other.sizes[s], each)).astype(np.int64)
    weights = np.repeat(np.sqrt(other.sizes[s] / np.maximum(each, 1)), each)
    parts, found = [(np.zeros(0, np.int64), np.zeros(0))] * len(tree), None
    for c in range(len(tree)):
        mine = slice(own[before[c]], own[before[c + 1]])
        found = columns[mine], weights[mine]
        above = parts[tree.parent[c]] if c else parts[0]
        if len(above[0]) > count // HALF:
            some = rng.permutation(len(above[0]))[: count // HALF]
            above = above[0][some], above[1][some] * np.sqrt(len(above[0]) / len(some))
        parts[c] = tuple(np.concatenate(pair) for pair in zip(found, above))
    first = offsets_of(np.array([len(columns) for columns, _ in parts]))
    return (first, *(np.concatenate(part) for part in zip(*parts)))
