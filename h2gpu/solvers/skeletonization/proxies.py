"""Proxies of the sites beyond M(b): points on rings about the cell, each weighted by the sites that it stands for.

    Σ_far sites k(x, b) k(x, b)ᵀ ≈ Σ_P w_p k(p, b) k(p, b)ᵀ,     w_p = density · area that p stands for

In the plane the rings are squares, on a sphere circles, on a line pairs of points. Those outside the box of the sites
have weight zero.
"""

from dataclasses import dataclass

import numpy as np

FIRST = 2.55  # widths from the cell's centre: M(b) ends at 2.5
RATIO, RINGS = 1.3, 8  # from ring to ring at least, and rings at most
POINTS = 64  # of a ring


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

    def around(self, centres, width):
        """Points (cells, count, dim) and the roots of their weights (cells, count), of cells with these centres.

        Those of weight zero are left out, as far as the other cells allow.
        """
        rings, ratio = self._rings(width)
        if not len(rings):
            return np.zeros((len(centres), 0, centres.shape[1])), np.zeros((len(centres), 0))
        if self.radius is None:
            points, weights = self._flat(centres, rings, ratio)
        else:
            points, weights = self._spherical(centres, rings, ratio)
        slack = 1e-9 * (self.high - self.low).max() + (0 if self.radius is None else width)
        inside = np.ones(points.shape[:2], bool)
        for x, low, high in zip(np.moveaxis(points, 2, 0), self.low - slack, self.high + slack):
            inside &= (x >= low) & (x <= high)
        count = inside.sum(axis=1)[:, None]
        real = np.arange(int(count.max())) < count
        first = np.zeros(real.shape, np.int64)  # a proxy of weight zero may lie anywhere
        first[real] = np.nonzero(inside)[1]
        cell = np.arange(len(centres))[:, None]
        return points[cell, first], np.sqrt(weights[cell, first] * real)

    def _rings(self, width):
        """Radii of the rings, and the ratio of one to the next."""
        farthest = np.pi * self.radius if self.radius else float((self.high - self.low).max())
        reach = farthest / (FIRST * width)
        if reach <= 1:
            return np.zeros(0), RATIO
        ratio = max(RATIO, reach ** (1 / RINGS))
        return FIRST * width * ratio ** np.arange(int(np.ceil(np.log(reach) / np.log(ratio)))), ratio

    def _flat(self, centres, rings, ratio):
        dim = centres.shape[1]
        shape = np.array([[-1.0], [1.0]]) if dim == 1 else _square(POINTS)
        points = centres[:, None, None] + rings[:, None, None] * shape
        extent = np.maximum(self.high - self.low, 1e-3 * (self.high - self.low).max())
        density = self.sites / extent.prod()
        areas = (2 * rings) ** dim * (ratio ** (dim / 2) - ratio ** (-dim / 2))
        weights = np.repeat(density * areas / len(shape), len(shape))
        return points.reshape(len(centres), -1, dim), np.broadcast_to(weights, (len(centres), len(weights)))

    def _spherical(self, centres, rings, ratio):
        """Circles about the point of the sphere nearest to the centre."""
        up = centres / np.linalg.norm(centres, axis=1, keepdims=True)
        least = np.eye(3)[abs(up).argmin(axis=1)]
        east = np.cross(least, up)
        east /= np.linalg.norm(east, axis=1, keepdims=True)
        north = np.cross(up, east)
        turn = 2 * np.pi * (np.arange(POINTS) + 0.5) / POINTS
        circle = np.cos(turn)[:, None] * east[:, None] + np.sin(turn)[:, None] * north[:, None]
        angles = np.minimum(rings / self.radius, np.pi)
        points = np.cos(angles)[:, None, None] * up[:, None, None] + np.sin(angles)[:, None, None] * circle[:, None]
        low, high = (np.minimum(angles * ratio**power, np.pi) for power in (-0.5, 0.5))
        weights = np.repeat(self.sites * (np.cos(low) - np.cos(high)) / 2 / POINTS, POINTS)
        points = self.radius * points.reshape(len(centres), -1, 3)
        return points, np.broadcast_to(weights, points.shape[:2])


def _square(count):
    """Points of the square of half side 1, evenly along it."""
    along = (np.arange(count // 4) + 0.5) / (count // 4) * 2 - 1
    one = np.ones_like(along)
    sides = [(along, -one), (one, along), (-along, one), (-one, -along)]
    return np.concatenate([np.stack(side, axis=1) for side in sides])
