"""Kriging: the best linear unbiased prediction, by a dense factorization and by the H²-matrix alike."""

import numpy as np
import pytest
from kriging_problems import COV, problem, textbook
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

from h2gpu.arrays import to_host
from h2gpu.covariance import Exponential, Gaussian, Matern, Nugget
from h2gpu.statistics import Kriging, cross, systems


def linear(X):
    return np.column_stack([np.ones(len(X)), X])


# The equations


@pytest.mark.parametrize("cov, kernel", [
    (Exponential(2.0, 0.3), 2.0 * kernels.Matern(0.3, nu=0.5)),
    (Matern(2.0, 0.3, 1.5), 2.0 * kernels.Matern(0.3, nu=1.5)),
    (Matern(0.5, (0.3, 0.7), 2.5), 0.5 * kernels.Matern((0.3, 0.7), nu=2.5)),
    (Matern(1.0, 0.2, 0.8) + Nugget(0.3), 1.0 * kernels.Matern(0.2, nu=0.8) + kernels.WhiteKernel(0.3)),
    (Gaussian(1.5, 0.2), 1.5 * kernels.RBF(0.2)),
], ids=repr)  # fmt: skip
def test_simple_kriging_is_scikit_learns_gaussian_process(cov, kernel):
    X, y, T = problem(400)
    process = GaussianProcessRegressor(kernel, alpha=0.05, optimizer=None).fit(X, y)
    mean, std = process.predict(T, return_std=True)
    for ours in (cov, kernel):
        kriging = Kriging(ours, nugget=0.05, trend=None).fit(X, y)
        np.testing.assert_allclose(kriging.predict(T), mean, atol=1e-7)
        np.testing.assert_allclose(kriging.predict(T, return_std=True)[1], std, atol=1e-7)
        assert kriging.log_marginal_likelihood() == pytest.approx(process.log_marginal_likelihood_value_, abs=1e-6)


@pytest.mark.parametrize("trend, columns", [
    ("constant", lambda X: np.ones((len(X), 1))),
    ("linear", linear),
    (lambda X: np.column_stack([np.cos(X[:, 0]), X[:, 1] ** 2]), None),
], ids=["constant", "linear", "function"])  # fmt: skip
@pytest.mark.parametrize("cov, nugget", [(COV, 0.05), (COV + Nugget(0.1), 0.0), (Exponential(1.0, 0.2), 0.0)], ids=repr)
def test_universal_kriging_is_the_textbooks(way, trend, columns, cov, nugget):
    X, y, T = problem()
    columns = columns or trend
    mean, variance = textbook(cov, nugget, X, y, T, columns(X), columns(T))
    kriging = Kriging(cov, nugget, trend).fit(X, y)
    found, std = kriging.predict(T, return_std=True)
    np.testing.assert_allclose(found, mean, atol=30 * way)
    np.testing.assert_allclose(std, variance**0.5, rtol=1e-6 if way < 1e-6 else 1e-2)
    K = cov(X) + nugget * np.eye(len(X))
    F, inverse = columns(X), np.linalg.inv(K)
    beta = np.linalg.solve(F.T @ inverse @ F, F.T @ inverse @ y)
    np.testing.assert_allclose(kriging.trend_coefficients_, beta, atol=30 * way)


def test_the_array_decides_where_kriging_is_done(xp, way):
    X, y, T = problem()
    kriging = Kriging(COV, 0.05, "linear")
    mean, std = kriging.fit(X, y).predict(T, return_std=True)
    found, error = kriging.fit(xp.asarray(X), xp.asarray(y)).predict(xp.asarray(T), return_std=True)
    assert isinstance(found, xp.ndarray) and isinstance(error, xp.ndarray)
    np.testing.assert_allclose(to_host(found), mean, atol=way)
    np.testing.assert_allclose(to_host(error), std, atol=way)


def test_the_h2_matrix_and_the_dense_one_agree_as_the_residual_tells(monkeypatch):
    X, y, T = problem(800)
    exact = Kriging(COV, 0.05).fit(X, y)
    monkeypatch.setattr(systems, "DENSE", 0)
    found = Kriging(COV, 0.05).fit(X, y)
    assert exact.residual_ < 1e-12 and exact.iterations_ == 0 and exact.rtol_ == 0
    assert 1e-12 < found.residual_ < 1e-3 and 0 < found.iterations_ <= 50 and found.rtol_ <= 1e-6
    assert abs(found.predict(T) - exact.predict(T)).max() < 5 * found.residual_
    finer = Kriging(COV, 0.05, rtol=1e-10).fit(X, y)
    assert finer.residual_ < 1e-2 * found.residual_


def test_predictions_are_linear_unbiased_and_translate_with_the_data(way):
    X, y, T = problem()
    kriging = Kriging(COV, 0.05, "linear")
    plane = 7 - 3 * X[:, 0] + 2 * X[:, 1]
    np.testing.assert_allclose(kriging.fit(X, plane).predict(T), 7 - 3 * T[:, 0] + 2 * T[:, 1], atol=10 * way)
    one, other = kriging.fit(X, y).predict(T), kriging.fit(X, 2 * y + plane).predict(T)
    np.testing.assert_allclose(other, 2 * one + 7 - 3 * T[:, 0] + 2 * T[:, 1], atol=50 * way)


def test_coordinates_far_from_the_origin_lose_no_digits():
    X, y, T = problem()
    far = np.array([500_000.0, 5_400_000.0])
    cov = Matern(2.0, 300.0, 1.5)
    near = Kriging(cov, 0.05, "linear").fit(1000 * X, y).predict(1000 * T)
    np.testing.assert_allclose(
        Kriging(cov, 0.05, "linear").fit(1000 * X + far, y).predict(1000 * T + far), near, atol=1e-6
    )


# Measurement error and variation below the sampling distance


@pytest.mark.parametrize("cov", [Exponential(1.0, 0.2), COV, COV + Nugget(0.2)], ids=repr)
def test_kriging_interpolates_without_measurement_error(way, cov):
    X, y, _ = problem(cov=cov, nugget=0.0)
    mean, std = Kriging(cov).fit(X, y).predict(X, return_std=True)
    np.testing.assert_allclose(mean, y, atol=10 * way)
    assert std.max() <= (1e-6 if way < 1e-6 else 1e-3)


def test_measurement_error_is_filtered_and_belongs_to_new_observations_only(way):
    X, y, _ = problem()
    kriging = Kriging(COV, 0.05).fit(X, y)
    field, std = kriging.predict(X, return_std=True)
    assert abs(field - y).max() > 0.1 and (std > 0.01).all() and (std < 0.05**0.5).all()
    same, wider = kriging.predict(X, return_std=True, observations=True)
    np.testing.assert_array_equal(same, field)
    np.testing.assert_allclose(wider**2, std**2 + 0.05)


def test_away_from_the_sites_the_two_nuggets_predict_the_same_and_differ_in_the_variance(way):
    X, y, T = problem()
    mean, std = Kriging(COV, 0.05).fit(X, y).predict(T, return_std=True)
    other, wider = Kriging(COV + Nugget(0.05)).fit(X, y).predict(T, return_std=True)
    np.testing.assert_allclose(other, mean, atol=10 * way)
    np.testing.assert_allclose(wider**2, std**2 + 0.05, rtol=1e-2)


def test_weights_are_repetitions(way):
    X, y, T = problem(200)
    weights = np.random.default_rng(0).integers(0, 4, 200)
    weighted = Kriging(COV, 0.05).fit(X, y, sample_weight=weights)
    repeated = Kriging(COV, 0.05).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    for a, b in zip(weighted.predict(T, return_std=True), repeated.predict(T, return_std=True)):
        np.testing.assert_allclose(a, b, atol=10 * way)


def test_repeated_sites_are_merged_exactly():
    X, _, T = problem(80)
    X = X[np.random.default_rng(0).integers(0, 80, 300)]
    y = np.random.default_rng(1).standard_normal(300)
    mean, variance = textbook(COV, 0.05, X, y, T, np.ones((300, 1)), np.ones((60, 1)))
    kriging = Kriging(COV, 0.05).fit(X, y)
    assert len(kriging.weights_) < 80
    found, std = kriging.predict(T, return_std=True)
    np.testing.assert_allclose(found, mean, atol=1e-9)
    np.testing.assert_allclose(std**2, variance, atol=1e-9)
    K = COV(X) + 0.05 * np.eye(300)
    r = y - kriging.trend_coefficients_[0]
    density = -0.5 * (np.linalg.slogdet(K)[1] + r @ np.linalg.solve(K, r) + 300 * np.log(2 * np.pi))
    assert kriging.log_marginal_likelihood() == pytest.approx(density, abs=1e-7)


def test_repeated_sites_without_measurement_error_must_agree():
    X, y, T = problem(100)
    once = Kriging(COV).fit(X, y).predict(T)
    twice = Kriging(COV).fit(np.concatenate([X, X[:30]]), np.concatenate([y, y[:30]])).predict(T)
    np.testing.assert_allclose(twice, once, atol=1e-9)
    with pytest.raises(ValueError, match="one value a site where nugget is 0"):
        Kriging(COV).fit(np.concatenate([X, X[:1]]), np.append(y, y[0] + 1))


# Variances of many targets


@pytest.mark.parametrize("cov, nugget", [(COV, 0.05), (Exponential(1.0, 0.2), 0.0), (COV + Nugget(0.1), 0.0)], ids=repr)
def test_many_variances_are_bounds_from_above_and_their_error_is_told(monkeypatch, cov, nugget):
    X, y, T = problem(600, 200)
    T = np.concatenate([T, X[:5]])
    exact = Kriging(cov, nugget, "linear").fit(X, y).predict(T, return_std=True)[1]
    monkeypatch.setattr(systems, "DENSE", 0)
    kriging = Kriging(cov, nugget, "linear", std_rtol=1e-3, rtol=1e-9).fit(X, y)
    std = kriging.predict(T, return_std=True)[1]
    error = kriging.variance_error_
    assert (std >= exact - 1e-6).all() and (std <= exact * 1.002 + 1e-6).all()
    assert error.neighbours >= 60 and error.checked == 16 and 0 <= error.mean <= error.worst < 2e-3
    few = kriging.predict(T[:10], return_std=True)[1]
    assert kriging.variance_error_.neighbours is None
    np.testing.assert_allclose(few, exact[:10], rtol=1e-4)
    kriging.set_params(std_rtol=0)
    np.testing.assert_allclose(kriging.predict(T, return_std=True)[1], exact, rtol=1e-4, atol=1e-5)


def test_targets_far_from_all_data_get_what_is_known_without_them():
    X, y, _ = problem()
    far = np.full((100, 2), 1000.0)
    mean, std = Kriging(COV, trend=None, mean=3.5).fit(X, y).predict(far, return_std=True)
    np.testing.assert_allclose(mean, 3.5)
    np.testing.assert_allclose(std, 2**0.5)


# Cross-covariances


def test_many_targets_are_predicted_through_a_rectangular_h2_matrix(monkeypatch):
    X, y, T = problem(500, 1000)
    kriging = Kriging(COV, 0.05, "linear").fit(X, y)
    mean, std = kriging.predict(T, return_std=True)
    monkeypatch.setattr(cross, "DIRECT", 0)
    other, error = kriging.predict(T, return_std=True)
    assert 0 < np.sqrt(np.mean((other - mean) ** 2)) < 2e-6 * y.std()
    np.testing.assert_allclose(error, std, rtol=1e-4)


def test_the_field_below_the_sampling_distance_is_shared_at_one_place_in_any_way(monkeypatch):
    cov = COV + Nugget(0.3)
    X, y, _ = problem(cov=cov, nugget=0.0)
    kriging = Kriging(cov).fit(X, y)
    monkeypatch.setattr(cross, "DIRECT", 0)
    np.testing.assert_allclose(kriging.predict(X), y, atol=1e-4)
    assert abs(kriging.predict(X + 1e-7) - y).max() > 0.1
