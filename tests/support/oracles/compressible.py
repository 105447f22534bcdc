"""H²-matrices to compress, of many point sets and covariances, and the promise that compression keeps."""

import numpy as np
import pytest
from reference import dense_of, difference, points_of

import h2gpu
from h2gpu.covariance import Exponential, Gaussian, Matern, Nugget

COVARIANCES = [
    Exponential(1.0, 0.1),
    Exponential(3.0, 2.0) + Nugget(0.5),
    Matern(1.0, 0.3, 1.5),
    Matern(0.5, 0.2, 0.7),
    Gaussian(1.0, 0.3),
    Exponential(1.0, (0.1, 0.4, 0.2)),
]
ORDERS = {1: 8, 2: 5, 3: 3}
LEAF_SIZES = {1: 8, 2: 25, 3: 27}
METHODS, SVDS, SPLITS = ["weighted", "basis"], ["auto", "jacobi", "randomized"], ["median", "mean"]
RTOLS = [1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12]


def matrix(name="uniform", n=600, dim=2, cov=COVARIANCES[0], xp=np, make=h2gpu.build, cols=None, dtype=float, **more):
    if getattr(cov, "dimension", None):
        cov = Exponential(1.0, cov.length_scale[:dim])
    if cols is not None:
        more["col_points"] = xp.asarray(points_of(cols, n // 2, dim, seed=1), dtype=dtype)
    parameters = {"leaf_size": LEAF_SIZES[dim], "order": ORDERS[dim], **more}
    return make(xp.asarray(points_of(name, n, dim), dtype=dtype), cov, **parameters)


def assert_promise(A, B, rtol, dense=None):
    """The measured error, of the dense matrices and by blocks: the same, and at most rtol."""
    error = difference(dense_of(A) if dense is None else dense, dense_of(B))
    assert error <= rtol
    assert A.relative_error(B) == pytest.approx(error, rel=1e-3, abs=10 * float(np.finfo(A.dtype).eps))
