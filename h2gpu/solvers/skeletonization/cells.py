"""Cells of a grid of 2^l cells along the longest side, the indices still active in them, and their neighbours.

    cell of x = ⌊(x − corner) / width_l⌋,     N(b): cells at distance 1,   M(b): at distance 2,   distance = max |i − j|

Cells without indices do not exist. The indices of the children that are left are those of the parent. Cells of one
colour, i mod 3 along each side, are at least three apart: what eliminations in them change has nothing in common.

Reference: Minden, Ho, Damle & Ying (2017), A recursive skeletonization factorization based on strong admissibility.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from h2gpu.batched.core.offsets import offsets_of, ranges

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
        """Of (n, dim) points on the host."""
        low, high = points.min(axis=0), points.max(axis=0)
        side = float((high - low).max()) or 1.0
        return cls(low, side * (1 + 1e-9), high - low)

    def width(self, level):
        """Side of a cell."""
        return self.side / 2**level

    def places(self, points, level):
        """Integer coordinates of the points' cells, (n, dim)."""
        places = np.floor((points - self.corner) / self.width(level)).astype(np.int64)
        return np.clip(places, 0, 2**level - 1)

    def deepest(self, points):
        """The first level on which cells hold few enough sites."""
        for level in range(1, DEEPEST + 1):
            _, counts = np.unique(key_of(self.places(points, level)), return_counts=True)
            if (counts.astype(float) ** 2).sum() <= OCCUPANCY * len(points):
                return level
        return DEEPEST


@dataclass(frozen=True, eq=False)
class Level:
    """The cells of one level, and the indices still active in them.

    places      (cells, dim) integer coordinates
    first       (cells + 1,) where the indices of each cell begin in members
    members     (indices,) site numbers; those of a cell that are left come first
    count       (cells,) how many are left
    near        (cells, 5^dim) cells at distance ≤ 2, themselves first, then those at distance 1; −1 for none
    adjacent    how many columns of near are at distance ≤ 1
    """

    places: np.ndarray
    first: np.ndarray
    members: np.ndarray
    count: np.ndarray
    near: np.ndarray
    adjacent: int

    @classmethod
    def of(cls, places, members):
        """From the coordinates (indices, dim) of the cells of the active indices (indices,)."""
        key = key_of(places)
        order = np.argsort(key, kind="stable")
        _, starts, counts = np.unique(key[order], return_index=True, return_counts=True)
        cells = places[order[starts]]
        shifts = _shifts(cells.shape[1])
        near = _lookup(cells, cells[:, None, :] + shifts)
        return cls(cells, offsets_of(counts), members[order], counts, near, 3 ** cells.shape[1])

    def __len__(self):
        return len(self.count)

    @property
    def colours(self):
        """Arrays of cells, each of one colour."""
        colour = (self.places % 3) @ 3 ** np.arange(self.places.shape[1])
        return [np.flatnonzero(colour == c) for c in np.unique(colour)]

    @property
    def active(self):
        """All indices left, cell by cell."""
        return self.members[ranges(self.first[:-1], self.count)]

    @property
    def owners(self):
        """The cell of each of them."""
        return np.repeat(np.arange(len(self)), self.count)

    def positions(self, cells):
        """Where in members the indices of lists of cells (lists, some), −1 for none, are, one after the other.

        Positions (lists, most), padded by −1, and of which of its list's cells each of them is.
        """
        count = np.where(cells < 0, 0, self.count[cells])
        total = count.sum(axis=1)
        at = np.full((len(cells), int(total.max(initial=0))), -1)
        which = np.zeros_like(at)
        real = np.arange(at.shape[1]) < total[:, None]
        at[real] = ranges(self.first[cells].ravel(), count.ravel())
        which[real] = np.repeat(np.tile(np.arange(cells.shape[1]), len(cells)), count.ravel())
        return at, which

    def keep(self, cell, indices):
        """Of this cell only these indices are left."""
        self.members[self.first[cell] : self.first[cell] + len(indices)] = indices
        self.count[cell] = len(indices)


def coarser(level):
    """The Level above, and for each cell its parent and where its indices begin there."""
    parents = level.places // 2
    above = Level.of(np.repeat(parents, level.count, axis=0), level.active)
    parent = _lookup(above.places, parents)
    order = np.argsort(parent, kind="stable")
    before = np.empty(len(level), np.int64)
    before[order] = offsets_of(level.count[order])[:-1]
    return above, parent, before - above.first[parent]


def key_of(places):
    """One number a place, from −2 to 2^DEEPEST + 1 along each side."""
    key = np.zeros(places.shape[:-1], np.int64)
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


def _shifts(dim):
    """All differences up to 2, by distance."""
    shifts = np.array(list(product(range(-REACH, REACH + 1), repeat=dim)))
    return shifts[np.argsort(abs(shifts).max(axis=1), kind="stable")]


def _lookup(cells, wanted):
    """Numbers of the wanted (…, dim) places among sorted cells, −1 for none."""
    keys, key = key_of(cells), key_of(wanted)
    found = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    return np.where(keys[found] == key, found, -1)
