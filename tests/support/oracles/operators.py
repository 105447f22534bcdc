"""Small H²-matrices as operators, and vectors to multiply them with."""

import numpy as np
from reference import EPS, points_of

import h2gpu
from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Nugget

COV = Exponential(2.0, 0.3) + Nugget(0.5)


def symmetric_matrix(xp=np, name="clustered", n=700, dim=2, cov=COV, dtype=np.float64, **parameters):
    parameters = {"leaf_size": 16, "order": 4, "split": "mean", **parameters}
    return h2gpu.build(xp.asarray(points_of(name, n, dim), dtype=dtype), cov, **parameters)


def rectangular_matrix(xp=np, n=500, m=300, cov=COV, dtype=np.float64, **parameters):
    points, cols = points_of("uniform", n, 2), points_of("clustered", m, 2, seed=1)
    parameters = {"leaf_size": 16, "order": 4, **parameters}
    return h2gpu.build(xp.asarray(points, dtype=dtype), cov, col_points=xp.asarray(cols, dtype=dtype), **parameters)


MATRICES = {"symmetric": symmetric_matrix, "rectangular": rectangular_matrix}


def vectors(A, side, *count, seed=0, dtype=np.float64):
    """Random vectors of the rows' (0) or columns' (1) length, where A lives."""
    x = np.random.default_rng(seed).standard_normal((A.shape[side], *count)).astype(dtype)
    return A.nearfield.blocks.xp.asarray(x)


def close(y, expected, tolerance=200 * EPS):
    np.testing.assert_allclose(to_host(y), expected, rtol=0, atol=tolerance * np.abs(expected).max(initial=1))
