"""Which pairs of clusters are far enough apart for a low-rank block.

    max(diam t, diam s) ≤ η · dist(t, s)

Two clusters of zero diameter at distance zero are admissible too: their block is constant. That ends the recursion on
heaps of duplicate points.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.texts import brief


@dataclass(frozen=True)
class Admissibility:
    """The standard condition; larger `eta` admits closer pairs, so that fewer blocks are dense and ranks grow.

    kinks   of each distance at which the covariance is not smooth, the factors of the coordinates that make it 1: pairs
            of clusters on both sides of it are not admissible, as no polynomial follows the covariance there
    """

    eta: float = 1.0
    kinks: tuple = ()

    def __post_init__(self):
        if not (isinstance(self.eta, (int, float, np.number)) and np.isfinite(self.eta) and self.eta > 0):
            raise ValueError(f"eta: expected a positive number, got {brief(self.eta)}; 1.0 is the usual choice")

    def __call__(self, row_boxes, col_boxes):
        """(pairs,) bool for the pairs of boxes of equal index."""
        diameter = np.maximum(row_boxes.diameters, col_boxes.diameters)
        admitted = diameter <= self.eta * row_boxes.distances(col_boxes)
        return admitted & ~_across(row_boxes, col_boxes, self.kinks) if self.kinks else admitted


def least_eta(row_boxes, col_boxes, kinks=()):
    """(pairs,) the smallest η that admits the pairs of boxes of equal index; infinite for boxes that meet, or lie on
    both sides of a kink."""
    diameter, distance = np.maximum(row_boxes.diameters, col_boxes.diameters), row_boxes.distances(col_boxes)
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.where(diameter > 0, diameter / distance, 0.0)
    if kinks:
        least[_across(row_boxes, col_boxes, kinks)] = np.inf
    return least


def _across(row_boxes, col_boxes, kinks):
    """(pairs,) whether some points of two boxes are nearer than a kink, and others farther."""
    nearest, farthest = row_boxes.gaps(col_boxes)
    across = np.zeros(len(nearest), bool)
    for factors in kinks:
        low, high = (((part * np.asarray(factors)) ** 2).sum(axis=1) for part in (nearest, farthest))
        across |= (low < 1) & (high > 1)
    return across
