"""Kriging from sites of every kind: one, many, at one place, on a line, on the sphere."""

import numpy as np
import pytest
from kriging_problems import COV, problem, textbook
from reference import points_of

from h2gpu.covariance import Exponential, Gaussian, Matern, on_sphere
from h2gpu.progress import watched_by
from h2gpu.statistics import Kriging, simulate

MANY = 4200  # sites more than a dense factorization takes


# Sites of every kind


@pytest.mark.parametrize("name", ["collinear", "duplicates", "clustered", "on_an_axis", "outlier", "all_equal", "grid"])
def test_sites_of_every_kind_are_kriged_or_refused_in_one_line(way, name):
    X = points_of(name, 300, 2)
    y = np.sin(5 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(300)
    T = points_of("uniform", 20, 2, seed=5)
    mean, variance = textbook(COV, 0.05, X, y, T, np.ones((300, 1)), np.ones((20, 1)))
    found, std = Kriging(COV, 0.05).fit(X, y).predict(T, return_std=True)
    np.testing.assert_allclose(found, mean, atol=50 * way)
    np.testing.assert_allclose(std**2, variance, atol=50 * way)


@pytest.mark.parametrize("name, rank", [("collinear", 2), ("on_an_axis", 2), ("all_equal", 1)])
def test_a_trend_that_the_sites_do_not_determine_is_refused(name, rank):
    X = points_of(name, 50, 2)
    with pytest.raises(ValueError, match=f"trend: expected linearly independent .* 3 columns of rank {rank} at"):
        Kriging(COV, 0.05, "linear").fit(X, np.arange(50.0))


def test_one_site():
    kriging = Kriging(COV).fit([[0.5, 0.5]], [3.0])
    mean, std = kriging.predict([[0.5, 0.5], [0.6, 0.5], [99.0, 0.0]], return_std=True)
    np.testing.assert_allclose(mean, 3.0)
    np.testing.assert_allclose(std**2, [0, 2 * (2 - COV.at_distance(0.1)), 4], atol=1e-12)  # γ(h) twice
    simple = Kriging(COV, trend=None, mean=1.0).fit([[0.5, 0.5]], [3.0])
    assert simple.predict([[0.6, 0.5]])[0] == pytest.approx(1 + 2 * COV.at_distance(0.1) / 2)


def test_constant_data_are_predicted_as_they_are(way):
    X, _, T = problem()
    for trend in ("constant", "linear"):
        kriging = Kriging(COV, 0.05, trend).fit(X, np.full(300, 7.0))
        np.testing.assert_allclose(kriging.predict(T), 7.0, atol=10 * way)


def test_collinear_sites_of_a_smooth_covariance_are_solved_with_a_warning(caplog):
    X = np.linspace(0, 1, 200)[:, None]
    with caplog.at_level("WARNING", logger="h2gpu"):
        kriging = Kriging(Gaussian(1.0, 0.3)).fit(X, np.sin(X[:, 0]))
    assert "singular to rounding" in caplog.text
    np.testing.assert_allclose(kriging.predict([[0.123]]), np.sin(0.123), atol=1e-5)


def test_sites_on_the_sphere_are_kriged_across_the_date_line():
    cov = on_sphere(Exponential(1.0, 1000.0))
    rng = np.random.default_rng(0)
    X = np.column_stack([(rng.uniform(170, 190, 200) + 180) % 360 - 180, rng.uniform(-10, 10, 200)])
    y = simulate(cov, X, 1, 0)[:, 0]
    T = np.array([[179.9, 0.0], [-179.9, 0.0], [180.0, 0.0]])
    mean, std = Kriging(cov).fit(X, y).predict(T, return_std=True)
    expected, variance = textbook(cov, 0.0, X, y, T, np.ones((200, 1)), np.ones((3, 1)))
    np.testing.assert_allclose(mean, expected, atol=1e-9)
    np.testing.assert_allclose(std**2, variance, atol=1e-9)
    assert np.ptp(mean) < 0.2


# Larger than dense


WORK = {
    "iterative": {"kriging equations", "vecchia", "solve", "cross-covariances", "variances"},
    "auto": {"kriging equations", "skeletonize", "cross-covariances", "variances"},
}


@pytest.mark.parametrize("solver", WORK)
def test_more_sites_than_a_dense_factorization_takes(solver):
    X, y, T = problem(MANY, 200, Matern(1.0, 0.1, 1.5), 0.0)
    told = set()
    with watched_by(lambda name, done, total: told.add(name)):
        kriging = Kriging(Matern(1.0, 0.1, 1.5), solver=solver).fit(X, y)
        mean, std = kriging.predict(T, return_std=True)
    assert WORK[solver] <= told and ("vecchia" in told) == (solver == "iterative") == (kriging.iterations_ > 0)
    assert kriging.iterations_ <= 50 and kriging.rtol_ <= 1e-6 and kriging.residual_ < 1e-4
    near = np.linalg.norm(X - T[0], axis=1) < 0.12
    local, variance = textbook(
        Matern(1.0, 0.1, 1.5), 0.0, X[near], y[near], T[:1], np.ones((near.sum(), 1)), np.ones((1, 1))
    )
    assert mean[0] == pytest.approx(local[0], abs=1e-3) and std[0] == pytest.approx(variance[0] ** 0.5, rel=1e-2)
    assert kriging.score(X[:100], y[:100]) > 0.999999
