"""Cells of a grid of 2^l cells along the longest side, the indices still active in them, and their neighbours.

    cell of x = ⌊(x − corner) / width_l⌋,     N(b): cells at distance 1,   M(b): at distance 2,   distance = max |i − j|

Cells without indices do not exist. The indices of the children that are left are those of the parent. Cells of one
colour, i mod 3 along each side, are at least three apart: what eliminations in them change has nothing in common.

Reference: Minden, Ho, Damle & Ying (2017), A recursive skeletonization factorization based on strong admissibility.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.batched.core.offsets import offsets_of

OCCUPANCY = 48  # sites of a site's cell, in the mean, up to which cells are not divided
DEEPEST = 20  # level of the smallest cells: sites at one place cannot be divided
REACH = 2  # distance to which an elimination changes blocks


@dataclass(frozen=True)
class Grid:
    """A square (cube) around the sites: corner (dim,), side; extent (dim,) of the sites' box, from the corner."""

    corner: np.ndarray
    side: float
    extent: np.ndarray

    @classmethod
    def around(cls, points):
        """Of (n, dim) points."""
        low, high = to_host(points.min(axis=0)), to_host(points.max(axis=0))
        side = float((high - low).max()) or 1.0
        return cls(low, side * (1 + 1e-9), high - low)

    def width(self, level):
        """Side of a cell."""
        return self.side / 2**level

    def places(self, points, level):
        """Integer coordinates of the points' cells, (n, dim), where the points are."""
        xp = array_module(points)
        places = xp.floor((points - xp.asarray(self.corner)) / self.width(level)).astype(np.int64)
        return xp.clip(places, 0, 2**level - 1)

    def deepest(self, points):
        """The first level on which cells hold few enough sites."""
        n, dim = points.shape
        for level in range(1, DEEPEST + 1):
            if n <= OCCUPANCY * 2 ** (dim * level):  # else even equal cells hold more
                counts = np.diff(_starts(array_module(points).sort(key_of(self.places(points, level)))))
                if (counts.astype(float) ** 2).sum() <= OCCUPANCY * n:
                    return level
        return DEEPEST


@dataclass(frozen=True, eq=False)
class Level:
    """The cells of one level, and the indices still active in them.

    places      (cells, dim) integer coordinates
    first       (cells + 1,) where the indices of each cell begin in members
    members     (indices + 1,) site numbers, where the work is done; those of a cell that are left come first, and last
                the padded index, the number of all sites
    count       (cells,) how many are left
    near        (cells, 5^dim) cells at distance ≤ 2, themselves first, then those at distance 1; −1 for none
    adjacent    how many columns of near are at distance ≤ 1
    """

    places: np.ndarray
    first: np.ndarray
    members: object
    count: np.ndarray
    near: np.ndarray
    adjacent: int

    @classmethod
    def of(cls, places):
        """From the coordinates (n, dim) of the cells of all sites, where the work is done."""
        xp = array_module(places)
        order, first = _runs(key_of(places))
        cells = to_host(places[order[xp.asarray(first[:-1])]])
        return cls._of(cells, first, xp.concatenate([order, xp.asarray([len(places)])]))

    @classmethod
    def _of(cls, cells, first, members):
        """Of cells in the order of their keys, none of them empty."""
        xp = array_module(members)
        there = xp.asarray(cells)
        near = to_host(_lookup(there, there[:, None] + xp.asarray(shifts(cells.shape[1]))))
        return cls(cells, first, members.astype(np.int32), np.diff(first), near, 3 ** cells.shape[1])

    def __len__(self):
        return len(self.count)

    @property
    def left(self):
        """How many indices are."""
        return int(self.count.sum())

    @property
    def colours(self):
        """Arrays of cells, each of one colour."""
        colour = (self.places % 3) @ 3 ** np.arange(self.places.shape[1])
        return [np.flatnonzero(colour == c) for c in np.unique(colour)]

    @property
    def active(self):
        """All indices left, cell by cell, where the work is done."""
        return self.members[_ranges(self.first[:-1], self.count, array_module(self.members))]

    def around(self, cells):
        """How many indices (cells, 5^dim) each of the near cells of these has, 0 where there is none."""
        return np.append(self.count, 0)[self.near[cells]]

    def numbers(self, places):
        """The cells at these places (cells, dim), all of which exist."""
        return np.searchsorted(key_of(self.places), key_of(places))

    @property
    def owners(self):
        """The cell of each of them."""
        return np.repeat(np.arange(len(self)), self.count)

    @cached_property
    def pairs(self):
        """Cells a ≤ b (2, pairs) of each pair at distance ≤ 2, and the numbers (cells, 5^dim) of the pairs of each cell
        with its near ones, 0 for none; where the work is done."""
        xp = array_module(self.members)
        near = xp.asarray(self.near)
        once = near >= xp.arange(len(near))[:, None]
        a, slots = xp.nonzero(once)
        numbers = xp.zeros(near.shape, np.int64)
        numbers[a, slots] = xp.arange(len(a))
        turned, others = xp.nonzero((near >= 0) & ~once)
        opposite = xp.asarray(slot_of(-shifts(self.places.shape[1])))
        numbers[turned, others] = numbers[near[turned, others], opposite[others]]
        return xp.stack([a, near[a, slots]]), numbers

    def keep(self, cells, kept, indices):
        """Of these cells (cells,) only so many indices each are left: indices (cells, most), padded."""
        xp = array_module(indices)
        first, count, j = *xp.asarray(np.stack([self.first[cells], kept])), xp.arange(indices.shape[1])
        self.members[xp.where(j < count[:, None], first[:, None] + j, len(self.members) - 1)] = indices
        self.count[cells] = kept


@dataclass(frozen=True, eq=False)
class Rows:
    """Where the rows of the panels of some cells b come from: those of b, then of N(b), then of M(b), each part padded.

    at, real   (cells, rows) positions in level.members, and whether they are not padded; where the work is done
    which      (cells, rows) position in near[cells].ravel() of the cell that each row is of, there too
    sizes      (cells,) indices of b
    beside     (cells,) indices of N(b)
    own, far   rows at which those of N(b) and of M(b) begin
    """

    at: object
    real: object
    which: object
    sizes: np.ndarray
    beside: np.ndarray
    own: int
    far: int

    @classmethod
    def of(cls, level, cells):
        """Of these cells of a Level. Cells give way to rows where the work is done."""
        xp, near, width = array_module(level.members), level.near[cells], 0
        count = level.around(cells)
        begin, widths, totals = np.empty_like(count), [], []
        for part in (slice(1), slice(1, level.adjacent), slice(level.adjacent, None)):
            totals.append(count[:, part].sum(axis=1))
            begin[:, part] = width + np.cumsum(count[:, part], axis=1) - count[:, part]
            width += int(totals[-1].max(initial=0))
            widths.append(width)
        begin, count, first = xp.asarray(np.stack([begin, count, level.first[near]]).astype(np.int32)).reshape(3, -1)
        row = xp.arange(len(cells) * width, dtype=np.int32)
        lead = xp.repeat(xp.arange(0, len(row) or 1, max(width, 1), dtype=np.int32), near.shape[1])
        begin = begin + lead
        which = xp.searchsorted(begin, row, side="right") - 1
        within = row - begin[which]
        real = within < count[which]
        at = xp.where(real, first[which] + within, len(level.members) - 1)
        shape = len(cells), width
        return cls(at.reshape(shape), real.reshape(shape), which.reshape(shape), *totals[:2], *widths[:2])


def coarser(level):
    """The Level above, and for each cell its parent and where its indices begin there."""
    some = np.flatnonzero(level.count)
    order, first = _runs(key_of(level.places[some] // 2))
    some = some[order]
    count = level.count[some]
    parent, start = np.zeros((2, len(level)), np.int64)
    parent[some] = np.repeat(np.arange(len(first) - 1), np.diff(first))
    ends = offsets_of(count)
    start[some] = ends[:-1] - ends[first[:-1]][parent[some]]
    xp = array_module(level.members)
    members = level.members[_ranges(level.first[some], count, xp)]
    members = xp.concatenate([members, level.members[-1:]])
    return Level._of(level.places[some[first[:-1]]] // 2, ends[first], members), parent, start


def key_of(places):
    """One number a place, from −2 to 2^DEEPEST + 1 along each side."""
    key = array_module(places).zeros(places.shape[:-1], np.int64)
    for k in range(places.shape[-1]):
        key = key * (2**DEEPEST + 2 * REACH) + places[..., k] + REACH
    return key


def interleaved(places, level):
    """One number a place whose neighbours in number are mostly neighbours in space: the bits of the coordinates, taken
    in turns (Morton's order)."""
    order = np.zeros(places.shape[:-1], np.int64)
    for bit in reversed(range(level)):
        for k in range(places.shape[-1]):
            order = 2 * order + (places[..., k] >> bit & 1)
    return order


@cache
def shifts(dim):
    """All differences of places up to 2, by distance: (5^dim, dim)."""
    every = np.array(list(product(range(-REACH, REACH + 1), repeat=dim)))
    return every[np.argsort(abs(every).max(axis=1), kind="stable")]


@cache
def _ranks(dim):
    """Where in `shifts` each difference is, by its number in base 5."""
    ranks = np.empty(len(shifts(dim)), np.int64)
    ranks[number_of(shifts(dim)) + len(ranks) // 2] = np.arange(len(ranks))
    return ranks


def number_of(differences):
    """Of places or their differences (…, dim), in base 5: differences up to 2 have all numbers around 0."""
    number = 0
    for k in range(differences.shape[-1]):
        number = number * (2 * REACH + 1) + differences[..., k]
    return number


def slot_of(differences):
    """Where in `shifts` differences (…, dim) of places up to 2 are, where those are."""
    ranks = array_module(differences).asarray(_ranks(differences.shape[-1]))
    return ranks[number_of(differences) + len(ranks) // 2]


@cache
def between(dim):
    """Where in `shifts` the difference of any two up to 1 is: (3^dim, 3^dim)."""
    few = shifts(dim)[: 3**dim]
    return slot_of(few[:, None] - few)


def with_last(a, value):
    """A matrix with a last column of one value."""
    xp = array_module(a)
    return xp.concatenate([a, xp.full((len(a), 1), value, a.dtype)], axis=1)


def _runs(key):
    """A stable order of keys, where they are, and where equal ones begin in it, and the end, on the host."""
    xp = array_module(key)
    order = xp.argsort(key, kind="stable")
    return order, _starts(key[order])


def _starts(key):
    """Where equal keys, ascending, begin, and the end, on the host."""
    xp = array_module(key)
    starts = xp.flatnonzero(key[1:] != key[:-1]) + 1
    return np.concatenate([np.zeros(min(len(key), 1), np.int64), to_host(starts), [len(key)]])


def _ranges(starts, counts, xp):
    """As `offsets.ranges`, made where xp works, of numbers on the host."""
    ends = offsets_of(counts)
    entry = xp.arange(int(ends[-1]))
    piece = xp.searchsorted(xp.asarray(ends), entry, side="right") - 1
    return entry + xp.asarray(starts - ends[:-1])[piece]


def _lookup(cells, wanted):
    """Numbers of the wanted (…, dim) places among cells in the order of their keys, −1 for none; where they are."""
    xp = array_module(cells)
    keys, key = key_of(cells), key_of(wanted)
    found = xp.minimum(xp.searchsorted(keys, key.ravel()).reshape(key.shape), len(keys) - 1)
    return xp.where(keys[found] == key, found, -1)
