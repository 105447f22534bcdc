"""Proxies of the sites beyond M(b): points on rings about the cell, each weighted by the sites that it stands for.

    Σ_far sites k(x, b) k(x, b)ᵀ ≈ Σ_P w_p k(p, b) k(p, b)ᵀ,     w_p = density · area that p stands for

In the plane the rings are squares, on a sphere circles, on a line pairs of points. Those outside the box of the sites
have weight zero.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import array_module, moved_together
from h2gpu.solvers.skeletonization.flat_changes import twin

FIRST = 2.55  # widths from the cell's centre: M(b) ends at 2.5
RATIO, RINGS = 1.3, 8  # from ring to ring at least, and rings at most
POINTS = 64  # of a ring
ALONG = (np.arange(POINTS // 4) + 0.5) / (POINTS // 4) * 2 - 1  # of a side of a square


@dataclass(frozen=True, eq=False)
class Proxies:
    """Where the sites are.

    low, high   (dim,) their box
    sites       how many
    radius      of the sphere that they lie on, or None
    """

    low: np.ndarray
    high: np.ndarray
    sites: int
    radius: float | None

    def around(self, centres, width, xp=np):
        """Points (cells, count, dim) and the roots of their weights (cells, count), of cells with these centres on the
        host, made where xp works.

        Those of weight zero are left out, as far as the other cells allow.
        """
        rings, ratio = self._rings(width)
        if not len(rings):
            return xp.zeros((len(centres), 0, centres.shape[1])), xp.zeros((len(centres), 0))
        slack = 1e-9 * (self.high - self.low).max() + (0 if self.radius is None else width)
        low, high = self.low - slack, self.high + slack
        flat = self.radius is None
        weights = (self._flat_weights if flat else self._spherical_weights)(rings, ratio)
        steps = steps_of(rings, centres.shape[1]) if flat else rings
        there, steps, weights, least, greatest = moved_together(xp, centres, steps, weights, low, high)
        points = there[:, None] + steps if flat else self._circles(there, steps)
        inside = ((points >= least) & (points <= greatest)).all(axis=2)
        rank = xp.cumsum(inside, axis=1)
        most = self._most_inside(centres, rings, low, high) if flat else int(rank[:, -1].max())
        lead = (most + 1) * xp.arange(len(centres))[:, None]
        first = xp.zeros((len(centres), most + 1), np.int64)  # a proxy of weight zero may lie anywhere
        first.reshape(-1)[xp.where(inside, rank - 1, most) + lead] = xp.arange(inside.shape[1])
        first, real = first[:, :most], xp.arange(most) < rank[:, -1:]
        first *= real
        return twin(points).along(points, first, 1), xp.sqrt(weights[first] * real)

    def _most_inside(self, centres, rings, low, high):
        """How many of its points are in the box, of the cell that has most: on the host, so that no GPU is waited for.

        A point is inside where each coordinate is: of the points of a square, counts along its sides in one direction
        times those of its ends in the other. Integers, which BLAS has no threads for.
        """
        along, ends, at = [], [], []
        for own, least, most in zip(centres.T, low, high):
            values, place = np.unique(own, return_inverse=True)
            at.append(place)
            for counts, sides in ((along, ALONG), (ends, np.array([-1.0, 1.0]))):
                x = values[:, None, None] + rings[:, None] * sides
                counts.append(((x >= least) & (x <= most)).sum(axis=2))
        if len(at) == 1:
            return int(ends[0].sum(axis=1)[at[0]].max())
        return int((along[0] @ ends[1].T + ends[0] @ along[1].T)[tuple(at)].max())

    def _rings(self, width):
        """Radii of the rings, and the ratio of one to the next."""
        farthest = np.pi * self.radius if self.radius else float((self.high - self.low).max())
        reach = farthest / (FIRST * width)
        if reach <= 1:
            return np.zeros(0), RATIO
        ratio = max(RATIO, reach ** (1 / RINGS))
        return FIRST * width * ratio ** np.arange(int(np.ceil(np.log(reach) / np.log(ratio)))), ratio

    def _flat_weights(self, rings, ratio):
        """Of the points of squares, or of the ends of intervals."""
        dim = len(self.low)
        extent = np.maximum(self.high - self.low, 1e-3 * (self.high - self.low).max())
        density = self.sites / extent.prod()
        areas = (2 * rings) ** dim * (ratio ** (dim / 2) - ratio ** (-dim / 2))
        count = len(steps_of(rings[:1], dim))
        return np.repeat(density * areas / count, count)

    def _spherical_weights(self, rings, ratio):
        """Of the points of circles."""
        angles = np.minimum(rings / self.radius, np.pi)
        low, high = (np.minimum(angles * ratio**power, np.pi) for power in (-0.5, 0.5))
        return np.repeat(self.sites * (np.cos(low) - np.cos(high)) / 2 / POINTS, POINTS)

    def _circles(self, centres, rings):
        """Circles about the point of the sphere nearest to the centre."""
        xp = array_module(centres)
        up = centres / xp.linalg.norm(centres, axis=1, keepdims=True)
        least = xp.eye(3)[abs(up).argmin(axis=1)]
        east = xp.cross(least, up)
        east /= xp.linalg.norm(east, axis=1, keepdims=True)
        north = xp.cross(up, east)
        turn = 2 * np.pi * (xp.arange(POINTS) + 0.5) / POINTS
        circle = xp.cos(turn)[:, None] * east[:, None] + xp.sin(turn)[:, None] * north[:, None]
        angles = xp.minimum(rings / self.radius, np.pi)
        across, aside = (turned(angles)[:, None, None] for turned in (xp.cos, xp.sin))
        points = across * up[:, None, None] + aside * circle[:, None]
        return self.radius * points.reshape(len(centres), -1, 3)


def steps_of(rings, dim):
    """From a centre to the points of all rings (rings · points, dim), in the plane or on a line."""
    shape = np.array([[-1.0], [1.0]]) if dim == 1 else _square(ALONG)
    return (rings[:, None, None] * shape).reshape(-1, dim)


def _square(along):
    """Points of the square of half side 1, on each side at these places along it."""
    one = np.ones_like(along)
    sides = [(along, -one), (one, along), (-along, one), (-one, -along)]
    return np.concatenate([np.stack(side, axis=1) for side in sides])
