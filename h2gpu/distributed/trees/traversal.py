"""The blocks that a rank has a part in, and what it must know of others' clusters for them.

    level by level:   pairs (t, s) of which t or s has points of the rank; where they are split, the owner of s sends
                      its children to the ranks of t, and the owner of t to those of s

The owner of s has the pair too, so that nobody asks. Blocks are those of `BlockTree.build`; see there.
"""

import numpy as np

from h2gpu.clustering import BlockTree
from h2gpu.clustering.block_tree import child_pairs, in_order
from h2gpu.clustering.boxes import Boxes
from h2gpu.distributed.partition import by_rank, ranks_of
from h2gpu.distributed.trees.exchange import Clusters, merged, swapped, taken

NAME = "clusters that blocks meet"


def essential_blocks(comm, sides, admissible):
    """The BlockTree of a rank, on EssentialTrees: of all blocks those with points of the rank; a call of all ranks.

    sides   [Shared of the rows, Shared of the columns], or one of a symmetric matrix
    """
    symmetric, known = len(sides) == 1, [side.clusters for side in sides]
    root, far, near = np.zeros(1, np.int64), [], []
    ours = _ours(comm, known[0], sides[0], root) | _ours(comm, known[-1], sides[-1], root)
    t = s = root[ours]  # a rank may have no points at all
    for _ in range(max(len(side.offsets) for side in sides) - 1):
        i, j = known[0].find(t), known[-1].find(s)
        is_far = admissible(_boxes(known[0]).take(i), _boxes(known[-1]).take(j))
        if symmetric:
            is_far &= t != s
        is_near = (known[0].first_child[i] < 0) & (known[-1].first_child[j] < 0) & ~is_far
        far.append((t[is_far], s[is_far]))
        near.append((t[is_near], s[is_near]))
        t, s = (part[~(is_far | is_near)] for part in (t, s))
        known = _with_children(comm, known, sides, t, s)
        children = known[0].first_child[known[0].find(t)], known[-1].first_child[known[-1].find(s)]
        t, s = child_pairs(t, s, *children, symmetric)
        ours = _ours(comm, known[0], sides[0], t) | _ours(comm, known[-1], sides[-1], s)
        t, s = t[ours], s[ours]
    far, near = in_order(far, symmetric), in_order(near, symmetric)
    trees = [side.tree(clusters) for side, clusters in zip(sides, known)]
    t, s = trees[0].numbers, trees[-1].numbers
    pairs = (np.stack([np.searchsorted(t, some[0]), np.searchsorted(s, some[1])]) for some in (far, near))
    return BlockTree(trees[0], trees[-1], *pairs)


def _boxes(clusters):
    return Boxes(clusters.lower, clusters.upper)


def _spans(clusters, side, numbers):
    """The lowest and the highest rank that has points of clusters."""
    i = clusters.find(numbers)
    return ranks_of(side.bounds, clusters.start[i], clusters.start[i] + clusters.size[i])


def _ours(comm, clusters, side, numbers):
    first, last = _spans(clusters, side, numbers)
    return (first <= comm.rank) & (comm.rank <= last)


def _with_children(comm, known, sides, t, s):
    """Clusters known of each side, with the children of others' clusters that are in pairs to be split."""
    spans = _spans(known[0], sides[0], t), _spans(known[-1], sides[-1], s)
    directions = [(1, s, spans[1], spans[0]), (0, t, spans[0], spans[1])]  # whose children go, and to whom
    if len(sides) == 1:
        numbers = np.append(s, t)
        theirs, others = (
            tuple(map(np.append, *(spans[i] for i in order))) for order in ((1, 0), (0, 1))
        )  # of t and of s, as both may be the one whose children go
        directions = [(0, numbers, theirs, others)]
    known = list(known)
    for side, numbers, (first, last), (lowest, highest) in directions:
        clusters = known[side]
        child = clusters.first_child[clusters.find(numbers)]
        goes = (first == last) & (first == comm.rank) & (child >= 0)
        goes &= (lowest != comm.rank) | (highest != comm.rank)
        parts = by_rank(child[goes], lowest[goes], highest[goes])
        parts.pop(comm.rank, None)
        found = {q: taken(clusters, clusters.find(np.repeat(c, 2) + np.tile([0, 1], len(c)))) for q, c in parts.items()}
        arrived = swapped(comm, found, taken(clusters, slice(0, 0)), NAME)
        known[side] = merged(clusters, *(Clusters(*part) for part in arrived.values())) if arrived else clusters
    return known
