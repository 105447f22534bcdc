"""The ends of the range: right within it, refused with the range outside, never wrong without a word."""

import numpy as np
import pytest

import h2gpu
from h2gpu.covariance import Exponential, Gaussian, Matern
from h2gpu.covariance.checks import RANGES
from h2gpu.covariance.sites import VARIANCES

UNIT = np.random.default_rng(0).random((500, 2))
KINDS = [Exponential, Gaussian, lambda v, l: Matern(v, l, 1.3)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", [0, 1])
def test_matrices_at_the_ends_of_the_range_are_those_of_the_unit_square(dtype, kind, end):
    name, rtol = np.dtype(dtype).name, 1e-4
    unit = RANGES[name][end] * (3.5 if end == 0 else 0.4)
    variance = VARIANCES[name][end] * (1.1, 0.9)[end]
    points = (UNIT * unit).astype(dtype)
    cov = kind(variance, 0.3 * unit)
    A = h2gpu.covariance_matrix(points, cov, rtol)
    exact = kind(1.0, 0.3)(points.astype(float) / unit)
    error = np.linalg.norm(A.to_dense() / variance - exact) / np.linalg.norm(exact)
    assert error < 1.1 * rtol
    assert h2gpu.sampled_error(A, points, cov) < rtol


OUTSIDE = {
    "large float32": (np.float32, 1e20, 1e20, "points: expected coordinates of float32 from 1e-12 to 1e.18, got"),
    "float32 whose squares overflow": (np.float32, 1e38, 1e38, "points: expected coordinates of float32"),
    "small float32": (np.float32, 1e-20, 1e-20, "points: expected coordinates of float32 from 1e-12"),
    "small float64": (np.float64, 1e-158, 1e-140, "points: expected coordinates of float64 from 1e-135"),
    "short lengths of float32": (np.float32, 1.0, 1e-20, "length_scale: expected a number from 1e-12 to 1e.153 for"),
    "short lengths of float64": (np.float64, 1.0, 1e-158, "length_scale: expected a number from 1e-135"),
    "lengths whose squares are 0": (np.float64, 1.0, 1e-300, "length_scale: expected a number from 1e-135"),
    "lengths whose squares overflow": (np.float64, 1.0, 1e200, "length_scale: expected a number from"),
}


@pytest.mark.parametrize("case", OUTSIDE)
@pytest.mark.parametrize("kind", KINDS)
def test_what_lies_outside_is_refused_with_the_range(case, kind):
    dtype, unit, length, message = OUTSIDE[case]
    points = (UNIT * unit).astype(dtype)
    for ask in (
        lambda: h2gpu.covariance_matrix(points, kind(1.0, length), 1e-4),
        lambda: h2gpu.build(points, kind(1.0, length) + Exponential(), order=4),
        lambda: kind(1.0, (length, length))(points),
    ):
        with pytest.raises(ValueError, match=message):
            ask()


@pytest.mark.parametrize("variance", [1e-45, 1e38])
def test_variances_that_float32_cannot_square_are_refused(variance):
    with pytest.raises(ValueError, match="cov: expected a variance from"):
        h2gpu.covariance_matrix(UNIT.astype(np.float32), Exponential(variance), 1e-4)
