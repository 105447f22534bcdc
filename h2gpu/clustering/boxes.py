"""Axis-aligned bounding boxes, many at a time.

diam [a, b] = ‖b − a‖₂        dist([a, b], [c, d]) = ‖max(0, a − d, c − b)‖₂
"""

from dataclasses import dataclass

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
        return Boxes(self.lower[index], self.upper[index])

    @property
    def sides(self):
        """Side lengths, (boxes, dim)."""
        return self.upper - self.lower

    @property
    def diameters(self):
        """Euclidean diameters, (boxes,)."""
        return np.linalg.norm(self.sides, axis=-1)

    def distances(self, other):
        """Euclidean distance of each box to the box of the same index in `other`, (boxes,); 0 where they meet."""
        gap = np.maximum(self.lower - other.upper, other.lower - self.upper)
        return np.linalg.norm(np.maximum(gap, 0), axis=-1)
