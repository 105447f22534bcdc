"""Pairs of sites for a variogram: how far apart, and in which direction.

    h_ij = ‖x_i − x_j‖ in the plane,   2R asin(‖X_i − X_j‖ / 2R) on a sphere of radius R, X on it

All pairs of few sites. Of many, random pairs and those of random sites with their nearest ones, so that short distances
are seen too: at each distance both are fair samples.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from h2gpu.covariance.sphere import Sphere
from h2gpu.solvers.neighbours import nearest

NEAREST = 30  # of each drawn site


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of sites.

    i, j       (pairs,) indices of the sites
    distance   (pairs,) in units of the coordinates, or of the sphere's radius
    """

    i: np.ndarray
    j: np.ndarray
    distance: np.ndarray

    def where(self, mask):
        """Some of the pairs."""
        return Pairs(self.i[mask], self.j[mask], self.distance[mask])


def pairs_of(x, radius, most, random_state):
    """The Pairs of sites x (n, d) on the host, about `most` of them at most; radius of a sphere, or None."""
    points = x if radius is None else Sphere(radius).embed(x)
    i, j = _all(len(x)) if len(x) * (len(x) - 1) // 2 <= most else _drawn(points, most, random_state)
    chord = np.linalg.norm(points[i] - points[j], axis=1)
    distance = chord if radius is None else 2 * radius * np.arcsin(np.minimum(chord / (2 * radius), 1))
    return Pairs(i, j, distance)


def towards(pairs, x, direction, tolerance):
    """The pairs within an angle of a direction or its opposite.

    direction   an angle in radians from the first axis (plane), or a vector (d,)
    """
    along = (x[pairs.i] - x[pairs.j]) @ unit_vector(direction)
    return pairs.where(np.abs(along) >= np.cos(tolerance) * pairs.distance * (1 - 1e-12))


def unit_vector(direction):
    """(d,) of an angle in radians from the first axis (plane), or of a vector (d,)."""
    u = np.asarray(direction, np.float64)
    return np.array([np.cos(u), np.sin(u)]) if u.ndim == 0 else u / np.linalg.norm(u)


def with_nearest(points, some, count):
    """Indices i, j of some of the points, each paired with its `count` nearest others, or all where there are fewer."""
    k = min(count + 1, len(points))
    near = nearest(cKDTree(points), points[some], k)[1][:, 1:]
    return np.repeat(some, k - 1), near.ravel()


def _all(n):
    return np.triu_indices(n, 1)


def _drawn(points, most, random_state):
    rng, n = np.random.default_rng(random_state), len(points)
    i, j = rng.integers(0, n, (2, most // 2))
    some = rng.permutation(n)[: max(1, most // (2 * NEAREST))]
    i, j = map(np.concatenate, zip((i, j), with_nearest(points, some, NEAREST)))
    different = i != j
    return i[different], j[different]
