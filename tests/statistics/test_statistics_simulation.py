"""Simulation: samples of the covariance of the model, and given data those of the kriging errors."""

import numpy as np
import pytest
from reference import points_of
from scipy.stats import chi2

from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Gaussian, Matern, Nugget, on_sphere
from h2gpu.statistics import Kriging, simulate, systems

COV = Matern(2.0, 0.3, 1.5)


@pytest.fixture(params=["dense", "H2Matrix"])
def way(request, monkeypatch):
    if request.param == "H2Matrix":
        monkeypatch.setattr(systems, "DENSE", 0)


def assert_covariance(Z, K):
    """(n, count) independent columns of covariance K: zᵀ K⁻¹ z is χ² with n degrees, and so is any Σ (aᵀz)²/aᵀKa."""
    n, count = Z.shape
    total = (Z * np.linalg.solve(K, Z)).sum()
    assert chi2.ppf(1e-4, n * count) < total < chi2.ppf(1 - 1e-4, n * count)
    A = np.random.default_rng(0).standard_normal((n, 8))
    A = np.concatenate([A, np.ones((n, 1)), np.linalg.eigh(K)[1][:, [0, n // 2, -1]]], axis=1)
    ratio = ((A.T @ Z) ** 2).sum(axis=1) / np.einsum("ij,ij->j", A, K @ A)
    assert (chi2.ppf(1e-5, count) < ratio).all() and (ratio < chi2.ppf(1 - 1e-5, count)).all()


@pytest.mark.parametrize("cov, nugget", [
    (COV, 0.0), (Exponential(1.0, 0.2), 0.5), (Exponential(1.0, (0.1, 0.4)) + Nugget(0.3), 0.0),
], ids=repr)  # fmt: skip
def test_samples_have_the_covariance_of_the_model(way, cov, nugget):
    X = points_of("uniform", 150, 2)
    Z = simulate(cov, X, 200, 0, nugget=nugget)
    assert Z.shape == (150, 200)
    assert_covariance(Z, cov(X) + nugget * np.eye(150))


def test_samples_given_data_have_the_mean_and_covariance_of_kriging(way):
    X, T = points_of("uniform", 120, 2), points_of("uniform", 40, 2, 1)
    y = simulate(COV, X, 1, 0, nugget=0.1)[:, 0]
    K = COV(X) + 0.1 * np.eye(120)
    k, F, f = COV(X, T), np.ones((120, 1)), np.ones((40, 1))
    simple = COV(T) - k.T @ np.linalg.solve(K, k)
    u = f.T - F.T @ np.linalg.solve(K, k)
    universal = simple + u.T @ np.linalg.solve(F.T @ np.linalg.solve(K, F), u)
    for trend, expected in ((None, simple), ("constant", universal)):
        kriging = Kriging(COV, 0.1, trend).fit(X, y)
        Z = kriging.sample_y(T, 300, 0)
        assert_covariance(Z - kriging.predict(T)[:, None], expected)
        new = kriging.sample_y(T, 300, 0, observations=True)
        assert_covariance(new - kriging.predict(T)[:, None], expected + 0.1 * np.eye(40))


@pytest.mark.parametrize("cov", [COV, COV + Nugget(0.3)], ids=repr)
def test_samples_given_data_honour_the_data_without_measurement_error(way, cov):
    X = points_of("uniform", 200, 2)
    y = simulate(cov, X, 1, 0)[:, 0]
    T = np.concatenate([points_of("uniform", 30, 2, 1), X[:20]])
    Z = Kriging(cov, trend="linear").fit(X, y).sample_y(T, 5, 0)
    np.testing.assert_allclose(Z[30:], np.repeat(y[:20, None], 5, axis=1), atol=2e-3)
    assert Z[:30].std(axis=1).min() > 1e-3


def test_one_place_has_one_value_and_measurement_errors_of_its_own():
    X = np.repeat(points_of("uniform", 50, 2), 2, axis=0)
    Z = simulate(Exponential(1.0, 0.3) + Nugget(0.2), X, 3, 0)
    np.testing.assert_array_equal(Z[::2], Z[1::2])
    noisy = simulate(Exponential(1.0, 0.3), X, 500, 0, nugget=0.5)
    assert (noisy[::2] - noisy[1::2]).var() == pytest.approx(1.0, rel=0.1)


def test_seeds_means_and_the_device(xp, way):
    X = points_of("uniform", 60, 2)
    Z = simulate(COV, X, 2, 7)
    np.testing.assert_array_equal(simulate(COV, X, 2, np.random.default_rng(7)), Z)
    assert abs(simulate(COV, X, 2, 8) - Z).min() > 0
    np.testing.assert_allclose(simulate(COV, X, 2, 7, mean=np.arange(60.0)), Z + np.arange(60.0)[:, None])
    there = simulate(COV, xp.asarray(X), 2, 7)
    assert isinstance(there, xp.ndarray)
    np.testing.assert_allclose(to_host(there), Z, atol=1e-5)
    assert simulate(COV, X, random_state=np.random.RandomState(0)).shape == (60, 1)


def test_smooth_fields_on_dense_sites_are_simulated_with_a_warning(way, caplog):
    X = np.linspace(0, 1, 300)[:, None]
    with caplog.at_level("WARNING", logger="h2gpu"):
        Z = simulate(Gaussian(1.0, 0.3), X, 50, 0)
    assert "singular to rounding" in caplog.text
    np.testing.assert_allclose((Z[:-1] - Z[1:]).std(), np.sqrt(2 - 2 * np.exp(-0.5 * (1 / 299 / 0.3) ** 2)), rtol=0.2)


def test_the_sphere_has_no_seam():
    cov = on_sphere(Exponential(1.0, 3000.0))
    Z = simulate(cov, [[180.0, 0.0], [-180.0 + 1e-9, 0.0], [0.0, 90.0], [120.0, 90.0 - 1e-9]], 20, 0)
    np.testing.assert_allclose(Z[0], Z[1], atol=1e-4)
    np.testing.assert_allclose(Z[2], Z[3], atol=1e-4)


@pytest.mark.parametrize("arguments, words", [
    ({"n_samples": 0}, "n_samples: expected a positive integer"),
    ({"nugget": -1.0}, "nugget: expected"),
    ({"mean": [1.0, 2.0]}, r"mean: expected a number or one for each of 1 rows of X, got shape \(2,\)"),
    ({"X": [1.0, 2.0]}, "points: expected shape"),
    ({"X": [[np.nan, 0.0]]}, "points: expected finite"),
    ({"cov": "gaussian"}, "cov: expected a covariance"),
])  # fmt: skip
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        simulate(**{"cov": COV, "X": [[0.0, 0.0]], **arguments})
