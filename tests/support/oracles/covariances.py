"""Covariances of every kind on which a theorem is tried, and points for them."""

import numpy as np

from h2gpu.covariance import (
    Constant,
    Cubic,
    Exponential,
    Gaussian,
    Gneiting,
    Matern,
    Nugget,
    PoweredExponential,
    RationalQuadratic,
    SpaceTime,
    Spherical,
    Wendland,
    on_sphere,
)

SMOOTHNESSES = [0.1, 0.3, 0.5, 0.75, 0.9, 1.0, 1.5, 1.7, 2.0, 2.5, 3.5, 4.5, 5.5, 7.3, 12.0, 19.9, 20.0, 30.0]
RADIAL = [
    Exponential(2.0, 0.3),
    Exponential(1.0, (0.3, 0.1)),
    Gaussian(0.5, 0.2),
    *[Matern(1.5, 0.4, nu) for nu in (0.2, 0.5, 1.0, 1.5, 2.5, 3.3, 25.0)],
    Spherical(2.0, 0.7),
    Cubic(1.0, (0.9, 0.4)),
    *[Wendland(1.5, 0.8, order, 2 + order) for order in range(4)],
    PoweredExponential(2.0, 0.3, 0.7),
    PoweredExponential(0.5, (0.3, 0.2), 1.8),
    RationalQuadratic(1.5, 0.3, 0.8),
]
ROTATED = [
    Exponential(2.0, (0.5, 0.1), rotation=0.6),
    Matern(1.0, (0.2, 0.7), 1.2, rotation=-2.0) + Nugget(0.1),
    Spherical(1.0, (0.9, 0.3), rotation=0.3) + Gaussian(0.5, (0.2, 0.6), rotation=1.1) + Exponential(0.1, 0.2),
    Exponential(1.0, (0.9, 0.3)) * RationalQuadratic(0.5, (0.2, 0.6), rotation=1.1),
]
COMPOSED = [
    Exponential() + Nugget(0.1),
    2 * Gaussian() * Matern(1.0, (0.2, 0.3), 1.2) + Constant(0.3) + Nugget(0.2),
    (Exponential() + Nugget(0.5)) * (Matern() + Nugget(0.25)),
]
IN_TIME = [
    SpaceTime(Exponential(2.0, 0.3), Matern(1.0, 40.0, 1.5)),
    SpaceTime(Matern(1.0, (0.5, 0.1), 1.5, rotation=0.6), Exponential(1.0, 2.0) + Constant(0.5)) + Nugget(0.1),
    SpaceTime(Spherical(1.0, 0.7), Wendland(1.0, 90.0, 1, 1)),
    Gneiting(Exponential(2.0, 0.3), 30.0, 0.7, 0.8),
    Gneiting(Matern(1.0, (0.5, 0.1), 1.2, rotation=0.6), 30.0, 1.0, 1.0),
    Gneiting(Gaussian(1.0, 0.3), 30.0, 0.5, 0.5) + SpaceTime(Exponential(1.0, 0.1), Constant()),
]
SPHERES = [
    on_sphere(Exponential(1.0, 2000.0)),
    on_sphere(Matern(2.0, 3000.0, 2.5) + Nugget(0.1), distance="chordal"),
    on_sphere(Exponential(1.0, 0.5) * Exponential(1.0, 0.7), radius=1.0) + Nugget(1.0),
]


def random_points(n=40, dim=2, seed=0):
    return np.random.default_rng(seed).random((n, dim))


def random_lonlat(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.uniform(-180, 180, n), np.rad2deg(np.arcsin(rng.uniform(-1, 1, n)))], axis=1)
