"""Which pairs of clusters are far enough apart for a low-rank block.

    max(diam t, diam s) ≤ η · dist(t, s)

Two clusters of zero diameter at distance zero are admissible too: their block is constant. That ends the recursion on
heaps of duplicate points.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Admissibility:
    """The standard condition; larger `eta` admits closer pairs, so that fewer blocks are dense and ranks grow."""

    eta: float = 1.0

    def __post_init__(self):
        if not (isinstance(self.eta, (int, float, np.number)) and np.isfinite(self.eta) and self.eta > 0):
            raise ValueError(f"eta: expected a positive number, got {self.eta!r}; 1.0 is the usual choice")

    def __call__(self, row_boxes, col_boxes):
        """(pairs,) bool for the pairs of boxes of equal index."""
        diameter = np.maximum(row_boxes.diameters, col_boxes.diameters)
        return diameter <= self.eta * row_boxes.distances(col_boxes)


def least_eta(row_boxes, col_boxes):
    """(pairs,) the smallest η that admits the pairs of boxes of equal index; infinite for boxes that meet."""
    diameter, distance = np.maximum(row_boxes.diameters, col_boxes.diameters), row_boxes.distances(col_boxes)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(diameter > 0, diameter / distance, 0.0)
