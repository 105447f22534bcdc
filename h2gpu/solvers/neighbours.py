"""The nearest sites before each one in an order.

    N(i) = the m of {0, …, i − 1} nearest to x_i

Blocks of the order, each half as long as what precedes it: a KD-tree of all sites up to the block's end gives somewhat
more neighbours than wanted, those that come later are struck out, and the few sites left with less than m ask again for
twice as many.
"""

from functools import partial

import numpy as np
import scipy

from h2gpu.batched.device.threads import parallel, threads_for

BLOCK = 1.5  # of positions before the end of a block to those before its beginning
QUERIES = 1000  # of a tree that are worth a thread
SPARE = 1.35  # neighbours asked for at first, as a multiple of those wanted and expected to come later


def tree_of(x):
    """A cKDTree of points, halved at the middle of the longest side: in a third of the time of medians (2²⁰ sites of
    a grid 0.13 for 0.45 s), and asked as fast."""
    return scipy.spatial.cKDTree(x, balanced_tree=False)


def nearest(tree, x, k):
    """(distances, indices) of the k points of a cKDTree nearest to each of x (n, dim), both (n, k).

    By threads of ours: after a Ctrl-C those of SciPy (seen in 1.17) go on writing to memory that is free by then.
    """
    parts = np.array_split(x, threads_for(len(x), QUERIES))
    found = parallel(lambda part: tree.query(part, k), parts)
    return tuple(np.concatenate(side).reshape(len(x), k) for side in zip(*found))


def nearest_earlier(x, places, m):
    """N(i) for the positions m … n − 1 of points x (n, dim) in order: (n − m, m) positions, nearest first.

    places   x[:places] are different places; a later site repeats one of them, and has its earlier copies first
    """
    return nearest_earlier_of(np.arange(m, len(x)), x, places, m)


def nearest_earlier_of(some, x, places, m):
    """The same rows for some ascending positions from m on: (count, m) positions."""
    found, begin, blocks = np.empty((len(some), m), np.int64), m or len(x), []
    while begin < places:
        end = min(places, max(int(BLOCK * begin), begin + 1))
        own = slice(*np.searchsorted(some, [begin, end]))
        if own.start < own.stop:
            blocks.append((begin, end, own))
        begin = end
    copies = slice(int(np.searchsorted(some, begin)), len(some))
    trees = parallel(lambda block: tree_of(x[: block[1]]), blocks[::-1])  # the largest first
    for begin, end, own in blocks:
        tree, parts = trees.pop(), np.array_split(some[own], threads_for(own.stop - own.start, QUERIES))
        found[own] = np.concatenate(parallel(partial(_of_block, x, tree, begin, end, m), parts))
    if copies.start < copies.stop:
        found[copies] = _of_copies(x, some[copies], places, m)
    return found


def _of_block(x, tree, begin, end, m, positions):
    """N(i) of ascending positions among begin … end − 1; tree: of what precedes the end."""
    found = np.empty((len(positions), m), np.int64)
    left, k = np.arange(len(positions)), min(end, int(SPARE * m * end / begin) + 2)
    while len(left):
        wanted = positions[left]
        candidates = tree.query(x[wanted], k)[1].reshape(len(left), k)
        earlier = candidates < wanted[:, None]
        enough = earlier.sum(axis=1) >= m
        found[left[enough]] = _leading(candidates[enough], earlier[enough], m)
        left, k = left[~enough], min(end, 2 * k)
    return found


def _leading(candidates, valid, m):
    """The first m valid candidates of every row."""
    return candidates[valid & (np.cumsum(valid, axis=1) <= m)].reshape(-1, m)


def _of_copies(x, some, places, m):
    """N(i) of some positions, each at one of the first `places` places: earlier copies, then the nearest."""
    copies, rows = x[some], {i: row for row, i in enumerate(some.tolist())}
    tree, own = tree_of(x[:places]), {}
    around, place = nearest(tree, copies, min(m, places))[1], nearest(tree, x[places:], 1)[1][:, 0]
    found = np.empty((len(copies), m), np.int64)
    for i in range(places, len(x)):
        earlier = own.setdefault(place[i - places], [place[i - places]])
        if i in rows:
            found[rows[i]] = _filled(earlier, around[rows[i]], i, m)
        earlier.append(i)
    return found


def _filled(copies, around, i, m):
    """At most m positions: the copies, the places around, then whatever precedes i."""
    chosen = list(dict.fromkeys([*copies[:m], *around.tolist()]))[:m]
    if len(chosen) < m:
        chosen = list(dict.fromkeys([*chosen, *range(i)]))[:m]
    return chosen
