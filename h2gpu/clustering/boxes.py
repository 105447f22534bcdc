"""Axis-aligned bounding boxes, many at a time.

diam [a, b] = ‖b − a‖₂        dist([a, b], [c, d]) = ‖max(0, a − d, c − b)‖₂
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class Boxes:
    """Tight boxes of clusters.

    lower   (boxes, dim) smallest coordinates
    upper   (boxes, dim) largest coordinates
    """

    lower: np.ndarray
    upper: np.ndarray

    def __len__(self):
        return len(self.lower)

    def __getitem__(self, index):
        if isinstance(index, np.ndarray) and index.dtype != bool:  # 16,384 of two coordinates: 0.03 ms, not 0.45
            return Boxes(self.lower.take(index, axis=0), self.upper.take(index, axis=0))
        return Boxes(self.lower[index], self.upper[index])

    def take(self, index):
        """The boxes of an index array, as by indexing, with their diameters: gathered rather than computed anew."""
        part = Boxes(self.lower.take(index, axis=0), self.upper.take(index, axis=0))
        vars(part)["diameters"] = self.diameters.take(index)
        return part

    @property
    def sides(self):
        """Side lengths, (boxes, dim)."""
        return self.upper - self.lower

    @cached_property
    def diameters(self):
        """Euclidean diameters, (boxes,)."""
        return _norms(self.sides)

    def gaps(self, other):
        """Smallest and largest distance in each coordinate, (boxes, dim) each, from points of each box to those of the
        box of the same index in `other`."""
        one, two = self.lower - other.upper, other.lower - self.upper
        return np.maximum(np.maximum(one, two), 0), np.maximum(-one, -two)

    def distances(self, other):
        """Euclidean distance of each box to the box of the same index in `other`, (boxes,); 0 where they meet."""
        gap, other_way = self.lower - other.upper, other.lower - self.upper
        return _norms(np.maximum(np.maximum(gap, other_way, out=gap), 0, out=gap))


def _norms(x):
    """Euclidean norms of the rows of (boxes, dim), which is overwritten: by coordinates, as NumPy's own are slow on
    short rows."""
    x *= x
    squares = x[:, 0].copy()
    for j in range(1, x.shape[1]):
        squares += x[:, j]
    return np.sqrt(squares, out=squares)
