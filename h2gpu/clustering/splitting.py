"""Points → clusters, level by level by array operations, on the CPU or the GPU as the points are.

A cluster is split across the longest side of its tight box. For each coordinate we keep all points ordered by
(cluster, coordinate): sorted once at the root, and a stable partition keeps every later level sorted. Boxes are then
the first and last points of a cluster, and a split is a number of points: those that go left. See Bentley (1975) and
Boukaram et al., section 8.3 (mean split).

What has an entry a point lives where the points live, numbers of points on the host. The same bits come out on either:
coordinates are only compared, subtracted and scaled by powers of two, each operation rounded by itself, and whatever
is summed is an integer.
"""

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.batched.core.dispatch import twins_of
from h2gpu.batched.core.offsets import offsets_of

twin = twins_of("h2gpu.clustering", cpu="splitting")
MEAN_BITS = 44  # of a cluster's side, in the mean split


def median(sorted_coordinates, sizes):
    """Left halves: as many points on either side, one more on the left when odd."""
    return (sizes + 1) // 2


def mean(sorted_coordinates, sizes):
    """The points at or below the mean coordinate of their cluster go left; at least one stays on either side.

    The mean is one of integers: coordinates in units of 2^−44 of the cluster's side (coarser from 2^18 points on, that
    sums stay within 64 bits). So neither the order of summation nor the last bits of a coordinate decide.
    """
    xp, first, spread = array_module(sorted_coordinates), offsets_of(sizes), repeater(sorted_coordinates, sizes)
    x = sorted_coordinates * 0.5  # the halves' differences never overflow
    x = x.astype(np.float64, copy=False)
    lower, upper = x[xp.asarray(first[:-1])], x[xp.asarray(first[1:] - 1)]
    bits = xp.asarray(np.minimum(MEAN_BITS, 62 - np.frexp(sizes.astype(np.float64))[1]))
    unit = xp.ldexp(xp.ones_like(lower), xp.minimum(bits - xp.frexp(upper - lower)[1], 1023))
    units = xp.rint((x - spread(lower)) * spread(unit)).astype(np.int64)
    count = xp.asarray(sizes)
    means = (2 * _sums(units, first) + count) // (2 * count)
    left = _sums(units <= spread(means), first)
    return xp.clip(left, 1, count - 1)


SPLITS = {"median": median, "mean": mean}


def repeater(points, sizes):
    """The function that repeats (clusters,) values for every point of its cluster, in the array module of `points`."""
    xp = array_module(points)
    if xp is np:
        return lambda values: np.repeat(values, sizes)
    heads = xp.zeros(int(sizes.sum()), np.int32)
    heads[xp.asarray(offsets_of(sizes)[1:-1])] = 1
    owner = xp.cumsum(heads, dtype=np.int32)
    return lambda values: xp.asarray(values)[owner]


def grow(points, leaf_size, split):
    """Split until no cluster is larger than a leaf.

    Returns the permutation (n,), where the points are; and on the host, clusters in level order: first point, number
    of points, parent, first child, lower and upper corners of the boxes; and the number of clusters of each level.
    """
    orders = twin(points).orders(points, split, leaf_size)
    starts, sizes, parents = np.zeros(1, np.int64), np.full(1, len(points), dtype=np.int64), np.full(1, -1)
    levels, count = [], 0
    while True:
        orders.note_boxes(sizes)
        large = sizes > leaf_size
        first_child = np.where(large, count + len(starts) + 2 * (np.cumsum(large) - 1), -1)
        levels.append((starts, sizes, parents, first_child))
        if not large.all():
            orders.retire(starts, sizes, large)
            starts, sizes = starts[large], sizes[large]
        if not len(sizes):
            break
        left = orders.split(sizes)
        parents = np.repeat(count + np.flatnonzero(large), 2)
        count += len(large)
        starts = np.stack([starts, starts + left], axis=1).ravel()
        sizes = np.stack([left, sizes - left], axis=1).ravel()
    clusters = [np.concatenate(part) for part in zip(*levels)]
    return orders.permutation, *clusters, *orders.boxes(), [len(level[0]) for level in levels]


def orders(points, split, leaf_size):
    """Orders of the points, for clusters larger than a leaf."""
    return Orders(points, split)


class Orders:
    """The points in the order of (cluster, coordinate), for each coordinate; by array operations where they are."""

    def __init__(self, points, split):
        xp, n = array_module(points), len(points)
        self.xp, self.choose = xp, split
        self.columns = xp.ascontiguousarray(points.T)
        index = np.int32 if n < 2**31 else np.int64
        self.orders = xp.stack([_stable_argsort(column).astype(index) for column in self.columns])
        self.permutation = xp.empty(n, index)
        self._corners = []

    def note_boxes(self, sizes):
        """Remember the corners of the clusters' tight boxes."""
        first = offsets_of(sizes)
        axes = self.xp.arange(len(self.columns))[:, None]
        ends = (self.xp.asarray(ends) for ends in (first[:-1], first[1:] - 1))
        lower, upper = (self.columns[axes, self.orders[:, end]].T for end in ends)
        self._corners.append(self.xp.stack([lower, upper]))
        self._sides = upper - lower

    def boxes(self):
        """The lower and the upper corners of all, (clusters, dim), on the host."""
        return to_host(self.xp.concatenate(self._corners, axis=1))

    def retire(self, starts, sizes, large):
        """Note the points of leaves in the permutation; all others stay."""
        xp, orders, spread = self.xp, self.orders, repeater(self.orders, sizes)
        stays = spread(large)
        places = spread(starts - offsets_of(sizes)[:-1]) + xp.arange(orders.shape[1])
        self.permutation[xp.compress(~stays, places)] = xp.compress(~stays, orders[0])
        self.orders, self._sides = orders[:, xp.flatnonzero(stays)], self._sides[xp.asarray(np.flatnonzero(large))]

    def split(self, sizes):
        """Orders with the left points first in every cluster; returns how many go left."""
        xp, orders, columns, spread = self.xp, self.orders, self.columns, repeater(self.orders, sizes)
        (axis, longest), place = _longest(self._sides), xp.arange(orders.shape[1])
        along = orders.ravel()[spread(axis * len(place)) + place]
        left = median(None, sizes)
        if self.choose is not median:
            coordinates = columns.ravel()[spread(axis * columns.shape[1]) + along]
            left = to_host(xp.where(longest > 0, xp.asarray(self.choose(coordinates, sizes)), xp.asarray(left)))
        is_left = place < spread(offsets_of(sizes)[:-1] + left)
        goes_left = xp.empty(columns.shape[1], bool)  # by point
        goes_left[along] = is_left
        places = xp.flatnonzero(is_left), xp.flatnonzero(~is_left)
        self.orders = xp.empty_like(orders)
        for old, order in zip(orders, self.orders):
            left_points = goes_left[old]
            order[places[0]], order[places[1]] = xp.compress(left_points, old), xp.compress(~left_points, old)
        return left


def _stable_argsort(x):
    """Indices in ascending order of x, equals by index."""
    if array_module(x) is not np:
        return array_module(x).argsort(x + 0.0)  # stable; −0 becomes 0, whatever the sort makes of signed zeros
    order = np.argsort(x)  # vectorized, unlike the stable sort: 2^20 in 30 ms with what follows instead of 105 ms
    y = x[order]
    distinct = y[1:] != y[:-1]
    if distinct.all():
        return order
    rank = np.concatenate(([0], np.cumsum(distinct)))
    return np.sort(rank * len(x) + order) - rank * len(x)


def _longest(sides):
    """The first of the longest sides of each box, and its length."""
    xp = array_module(sides)
    axis, longest = xp.zeros(len(sides), np.int64), sides[:, 0]
    for j in range(1, sides.shape[1]):
        axis = xp.where(sides[:, j] > longest, j, axis)
        longest = xp.maximum(longest, sides[:, j])
    return axis, longest


def _sums(values, first):
    """Exact sums of integers over clusters that begin at first[t] and end at first[t + 1]; only the sums must fit."""
    xp = array_module(values)
    total = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(values, dtype=np.int64)])[xp.asarray(first)]
    return total[1:] - total[:-1]
