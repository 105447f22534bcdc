"""Pairs of sites for a variogram: how far apart, and in which direction.

    h_ij = ‖x_i − x_j‖ in the plane,   2R asin(‖X_i − X_j‖ / 2R) on a sphere of radius R, X on it

All pairs of few sites. Of many, random pairs and those of random sites with their nearest ones, so that short distances
are seen too: at each distance both are fair samples.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from h2gpu.batched.device.threads import thread_count
from h2gpu.covariance.sphere import Sphere

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
    u = np.array([np.cos(direction), np.sin(direction)]) if np.ndim(direction) == 0 else np.asarray(direction, float)
    along = (x[pairs.i] - x[pairs.j]) @ (u / np.linalg.norm(u))
    return pairs.where(np.abs(along) >= np.cos(tolerance) * pairs.distance * (1 - 1e-12))


def _all(n):
    return np.triu_indices(n, 1)


def _drawn(points, most, random_state):
    rng, n = np.random.default_rng(random_state), len(points)
    i, j = rng.integers(0, n, (2, most // 2))
    some = rng.permutation(n)[: max(1, most // (2 * NEAREST))]
    near = cKDTree(points).query(points[some], NEAREST + 1, workers=thread_count())[1][:, 1:]
    i, j = np.concatenate([i, np.repeat(some, NEAREST)]), np.concatenate([j, near.ravel()])
    different = i != j
    return i[different], j[different]
