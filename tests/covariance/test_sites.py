"""Sites: the covariance in their coordinates is the caller's covariance of the caller's points."""

import numpy as np
import pytest
from reference import points_of

from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Gaussian, Matern, Nugget, on_sphere
from h2gpu.covariance.sites import Sites

PLANE = [Exponential(2.0, 0.3), Matern(1.5, (0.2, 3.0), 1.5) + Nugget(0.1), Gaussian(1.0, (8.0, 0.01)) * Exponential()]


@pytest.mark.parametrize("cov", PLANE, ids=repr)
def test_the_covariance_at_sites_is_that_of_the_points(cov, xp):
    points, cols = (points_of("uniform", n, 2, seed=n) for n in (60, 40))
    sites = Sites.of(xp.asarray(points), cov, xp.asarray(cols))
    assert sites.shape == (60, 40) and not sites.symmetric and sites.xp is xp
    values = sites.cov.values(sites.points[:, None], sites.columns[None])
    np.testing.assert_allclose(to_host(values), cov(points, cols), rtol=1e-12)


def test_sites_on_a_sphere_have_three_coordinates():
    lonlat, cov = np.array([[0.0, 0.0], [90.0, 0.0], [7.0, 50.0]]), on_sphere(Exponential(1.0, 1000.0))
    sites = Sites.of(lonlat, cov)
    assert sites.symmetric and sites.columns is sites.points and sites.dim == 3
    values = sites.cov.values(sites.points[:, None], sites.points[None])
    np.testing.assert_allclose(values, cov(lonlat), rtol=1e-12)


@pytest.mark.parametrize("cov", PLANE[:2], ids=repr)
@pytest.mark.parametrize("rectangular", [False, True])
def test_the_norm_is_about_that_of_the_matrix_without_nugget(rectangular, cov):
    points, cols = points_of("uniform", 900, 2), points_of("uniform", 500, 2, seed=1) if rectangular else None
    exact = np.linalg.norm(cov(points, points if cols is None else cols))
    assert Sites.of(points, cov, cols).norm == pytest.approx(exact, rel=0.2)


def test_the_norm_is_the_same_wherever_the_points_are(xp):
    points = points_of("clustered", 500, 2)
    assert Sites.of(xp.asarray(points), PLANE[0]).norm == Sites.of(points, PLANE[0]).norm


@pytest.mark.parametrize(
    ("points", "cov", "cols", "message"),
    [
        (np.zeros(3), Exponential(), None, r"points: expected shape \(n, dim\)"),
        (np.full((3, 2), np.nan), Exponential(), None, "points: expected finite coordinates"),
        (np.zeros((3, 2)), "exponential", None, "cov: expected a covariance"),
        (np.zeros((3, 2)), Exponential(1e120), None, "cov: expected a variance from"),
        (np.zeros((3, 2)), Exponential(), np.zeros((3, 3)), "col_points: expected 2 coordinates"),
        (np.zeros((3, 2), np.float16), Exponential(), None, "expected float32 or float64"),
    ],
)
def test_what_is_wrong_is_told(points, cov, cols, message):
    with pytest.raises(ValueError, match=message):
        Sites.of(points, cov, cols)
