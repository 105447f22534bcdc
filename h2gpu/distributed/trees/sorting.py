"""Shares of points → the clusters of `ClusterTree.build`, to the last bit, each with one rank.

    top      halves of the points, down to some subtrees a rank, where the points are:   see `halving`
    below    points go to the ranks of their subtrees, which sort and split them

A cluster's children depend on its own points and their order alone, which is why the parts fit.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.clustering.splitting import SPLITS, grow
from h2gpu.distributed.trees.exchange import joined, swapped, taken
from h2gpu.distributed.trees.halving import halved

MORE = 2  # levels of the top beyond log₂ of the ranks: 4 to 8 subtrees a rank, so that shares are even
NAME = "points of subtrees"


class Grown(NamedTuple):
    """Clusters that do not know their numbers yet: level, range of points, points of the parent, corners."""

    level: np.ndarray
    start: np.ndarray
    size: np.ndarray
    above: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True, eq=False)
class Sorted:
    """What one rank has of sorted points.

    n         points of all ranks
    depth     level of the subtrees
    top       Grown of the levels 0 … depth, the same on all ranks, by level from the left
    below     Grown of the levels below, of this rank's subtrees, likewise
    begin     where this rank's points begin in tree order
    x         (own, dim) points in tree order
    numbers   (own,) their numbers, as the shares follow one another
    """

    n: int
    depth: int
    top: Grown
    below: Grown
    begin: int
    x: np.ndarray
    numbers: np.ndarray


def sorted_points(comm, x, leaf_size, split="median"):
    """Sorted of (n_r, dim) shares of points on the host, finite and n ≥ 1 in all; a call of all ranks."""
    depth = int(np.ceil(np.log2(comm.size))) + MORE if comm.size > 1 else 0
    halve = split if callable(split) else SPLITS[split]
    inner, roots = halved(comm, comm.xp.asarray(x) if depth else x, leaf_size, halve, depth)
    tops = [top for top, _ in roots]
    sorters = np.array([(top.place << (depth - top.level)) * comm.size >> depth for top in tops])
    arrived = _at_sorters(comm, x, [to_host(members) for _, members in roots], sorters)
    grown = {i: _subtree(comm.xp, tops[i], *points, leaf_size, halve) for i, points in arrived.items()}
    mine = {i: (clusters.lower[0], clusters.upper[0]) for i, (clusters, *_) in grown.items()}
    corners = {i: found for part in comm.gather(mine, NAME) for i, found in part.items()}
    top = _grown([*inner, *((top, *corners[i]) for i, top in enumerate(tops))], x.dtype)
    below = joined([taken(top, slice(0, 0)), *(taken(clusters, slice(1, None)) for clusters, *_ in grown.values())])
    own = np.concatenate([x[:0], *(points for _, points, _ in grown.values())])
    numbers = np.concatenate([np.zeros(0, np.int64), *(numbers for *_, numbers in grown.values())])
    n, begin = (sum(t.size for t, q in zip(tops, sorters) if q < rank) for rank in (comm.size, comm.rank))
    return Sorted(n, depth, _in_order(top), _in_order(below), begin, own, numbers)


def _at_sorters(comm, x, members, sorters):
    """{root: (points, numbers)} of the roots that this rank sorts, points in order of their numbers."""
    first = sum(comm.gather(len(x), NAME)[: comm.rank])
    parts = {}
    for q in np.unique(sorters):
        some = [(np.full(len(members[i]), i), members[i]) for i in np.flatnonzero(sorters == q)]
        roots, points = (np.concatenate(part) for part in zip(*some))
        parts[int(q)] = roots, x[points], first + points
    arrived = swapped(comm, parts, (np.zeros(0, np.int64), x[:0], np.zeros(0, np.int64)), NAME)
    found = {}
    for i in np.flatnonzero(sorters == comm.rank).tolist():
        some = [(points[roots == i], numbers[roots == i]) for roots, points, numbers in arrived.values()]
        found[i] = tuple(np.concatenate(part) for part in zip(*some))
    return found


def _subtree(xp, top, x, numbers, leaf_size, halve):
    """(Grown of a subtree with its root first, its points and their numbers in tree order); split where xp is."""
    order, start, size, parent, _, lower, upper, counts = grow(xp.asarray(x), leaf_size, halve)
    order = to_host(order)
    level = top.level + np.repeat(np.arange(len(counts)), counts)
    above = np.where(parent >= 0, size[parent], top.above)
    return Grown(level, start + top.start, size, above, lower, upper), x[order], numbers[order]


def _grown(tops, dtype):
    """Grown of (Top, lower corner, upper corner)."""
    numbers = (np.array([getattr(top, name) for top, *_ in tops]) for name in ("level", "start", "size", "above"))
    return Grown(*numbers, *(np.array(side, dtype) for side in list(zip(*tops))[1:]))


def _in_order(clusters):
    """By level, from the left."""
    return taken(clusters, np.lexsort((clusters.start, clusters.level)))
