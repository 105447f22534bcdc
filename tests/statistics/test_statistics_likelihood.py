"""The likelihood and its gradient: dense, by Vecchia's approximation, by the H²-matrix."""

import numpy as np
import pytest
from reference import points_of
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

from h2gpu.arrays import to_host
from h2gpu.covariance import Constant, Exponential, Gaussian, Matern, Nugget, on_sphere
from h2gpu.statistics import Kriging, LogLikelihood, log_likelihood, simulate, systems
from h2gpu.statistics.likelihood.log_likelihood import Data
from h2gpu.statistics.likelihood.parameters import NAMES, Model
from h2gpu.statistics.likelihood.vecchia_moments import backward, forward, vecchia_moments, vecchia_rows
from h2gpu.statistics.places import places_of
from h2gpu.statistics.trends import trend_of

MODELS = [
    (Matern(2.0, 0.3, 1.5), 0.05),
    (Matern(2.0, 0.3, 0.8), 0.05),
    (Exponential(1.0, (0.2, 0.5)) + Gaussian(0.3, 0.1) + Nugget(0.1), 0.05),
    (on_sphere(Exponential(1.0, 20.0), 100.0), 0.1),
    (Constant(2.0) * Exponential(1.0, 0.3) + Nugget(0.2), 0.0),
    ((Exponential(1.0, 0.3) + Nugget(0.1)) * Matern(2.0, 0.5, 1.5), 0.0),
]
TRENDS = [(None, False), ("constant", False), ("linear", False), ("linear", True)]


def problem(n=200, seed=0):
    X = points_of("uniform", n, 2, seed)
    y = simulate(Matern(2.0, 0.3, 1.5), X, 1, seed, nugget=0.05)[:, 0] + 1 + X[:, 1]
    return X, y


def data_of(X, y, trend=None, restricted=False):
    return Data(places_of(X, y, np.ones(len(y))), trend_of(trend, X.shape[1]), restricted)


def differences(f, theta, h=1e-4):
    """Central differences of f."""
    return np.array([(f(theta + h * e) - f(theta - h * e)) / (2 * h) for e in np.eye(len(theta))])


# Values


def test_it_is_the_density_of_the_normal_distribution():
    X, y = problem(60)
    for cov, nugget in MODELS:
        exact = multivariate_normal(np.full(60, 0.5), cov(X) + nugget * np.eye(60)).logpdf(y)
        assert log_likelihood(cov, X, y, nugget, mean=0.5) == pytest.approx(exact, abs=1e-9)


def test_it_is_scikit_learns_with_its_gradient():
    X, y = problem(500)
    kernel = 2.0 * kernels.Matern(0.3, nu=1.5) + kernels.WhiteKernel(0.05)
    process = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, y)
    value, gradient = process.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    ours = log_likelihood(Matern(2.0, 0.3, 1.5), X, y, 0.05, gradient=True)
    assert ours == pytest.approx(value, abs=1e-6) and ours.standard_error == 0
    assert ours.names == ["variance", "length_scale", "nugget"]
    np.testing.assert_allclose(ours.gradient, gradient, rtol=1e-6, atol=1e-5)
    within = log_likelihood(Matern(2.0, 0.3, 1.5) + Nugget(0.05), X, y)
    assert within == pytest.approx(value, abs=1e-6)


def test_trend_coefficients_take_their_best_values():
    X, y = problem(80)
    cov, F = Exponential(1.0, 0.3), np.column_stack([np.ones(80), X])
    best = log_likelihood(cov, X, y, 0.1, "linear")
    K = cov(X) + 0.1 * np.eye(80)
    beta = np.linalg.solve(F.T @ np.linalg.solve(K, F), F.T @ np.linalg.solve(K, y))
    assert best == pytest.approx(multivariate_normal(F @ beta, K).logpdf(y), abs=1e-9)
    assert best > multivariate_normal(F @ beta + 0.1, K).logpdf(y)


def test_the_restricted_likelihood_is_that_of_contrasts():
    """Of any orthonormal basis of the data orthogonal to the trend."""
    X, y = problem(80)
    cov, F = Exponential(1.0, 0.3), np.column_stack([np.ones(80), X])
    N = np.linalg.qr(F, mode="complete")[0][:, 3:]
    K = cov(X) + 0.1 * np.eye(80)
    exact = multivariate_normal(np.zeros(77), N.T @ K @ N).logpdf(N.T @ y)
    for shift in (0.0, 5.0):
        found = log_likelihood(cov, X, y + shift * F.sum(axis=1), 0.1, "linear", restricted=True)
        assert found == pytest.approx(exact, abs=1e-8)


def test_vecchias_likelihood_with_all_neighbours_is_exact():
    X, y = problem(40)
    for cov, nugget in MODELS:
        for trend, restricted in TRENDS:
            data, model = data_of(X, y, trend, restricted), Model(cov, nugget, NAMES)
            value, _ = data.vecchia(model, vecchia_rows(X, cov, 39))
            exact = data.log_likelihood(model, gradient=True)
            assert value == pytest.approx(exact, abs=1e-8)
            np.testing.assert_allclose(value.gradient, exact.gradient, atol=1e-5)


def test_the_h2_likelihood_is_exact_within_its_standard_error(monkeypatch):
    X, y = problem(800)
    cov = Matern(2.0, 0.2, 1.5)
    for trend, restricted in ((None, False), ("linear", True)):
        monkeypatch.setattr(systems, "DENSE", 4096)
        exact = log_likelihood(cov, X, y, 0.05, trend, restricted=restricted, gradient=True)
        monkeypatch.setattr(systems, "DENSE", 0)
        found = log_likelihood(cov, X, y, 0.05, trend, restricted=restricted, gradient=True, rtol=1e-9, probes=32)
        assert 0 < found.standard_error < 0.1
        assert abs(found - exact) < 4 * found.standard_error + 1e-3
        assert (found.gradient_error < 0.02 * abs(exact.gradient) + 0.2).all()
        assert (abs(found.gradient - exact.gradient) < 5 * found.gradient_error + 1e-3 * abs(exact.gradient)).all()


def test_the_same_seed_gives_the_same_value(monkeypatch):
    X, y = problem(500)
    monkeypatch.setattr(systems, "DENSE", 0)
    one, other, third = (log_likelihood(Exponential(1.0, 0.2), X, y, 0.1, random_state=seed) for seed in (1, 1, 2))
    assert one == other != third


# Gradients


@pytest.mark.parametrize("cov, nugget", MODELS, ids=repr)
@pytest.mark.parametrize("trend, restricted", TRENDS)
def test_gradients_are_those_of_finite_differences(cov, nugget, trend, restricted):
    X, y = problem(120)
    model, data = Model(cov, nugget, NAMES), data_of(X, y, trend, restricted)
    rows = vecchia_rows(X, cov, 12)
    for value in (
        lambda m, gradient: data.log_likelihood(m, gradient),
        lambda m, gradient: data.vecchia(m, rows, gradient)[0],
    ):
        numbers = differences(lambda theta, value=value: value(model.at(theta), False), model.theta)
        np.testing.assert_allclose(value(model, True).gradient, numbers, rtol=1e-5, atol=1e-5)


def test_repeated_sites_add_their_share_to_value_and_gradient():
    X, y = problem(120)
    X = np.concatenate([X, X[:40], X[:20]])
    y = np.concatenate([y, y[:40] + 0.3, y[:20] - 0.1])
    cov, model = Matern(2.0, 0.3, 1.5), Model(Matern(2.0, 0.3, 1.5), 0.05)
    exact = multivariate_normal(np.zeros(180), cov(X) + 0.05 * np.eye(180)).logpdf(y)
    data = data_of(X, y)
    assert data.log_likelihood(model) == pytest.approx(exact, abs=1e-8)
    numbers = differences(lambda theta: data.log_likelihood(model.at(theta)), model.theta)
    np.testing.assert_allclose(data.log_likelihood(model, True).gradient, numbers, rtol=1e-5, atol=1e-5)


def test_weights_scale_the_measurement_error():
    X, y = problem(60)
    weights = np.random.default_rng(0).uniform(0.5, 3, 60)
    cov = Matern(2.0, 0.3, 1.5)
    exact = multivariate_normal(np.zeros(60), cov(X) + np.diag(0.05 / weights)).logpdf(y)
    assert log_likelihood(cov, X, y, 0.05, sample_weight=weights) == pytest.approx(exact, abs=1e-9)


def test_the_score_has_the_information_as_its_covariance():
    """Over simulated data, for the exact likelihood and Vecchia's."""
    X = points_of("uniform", 80, 2)
    model = Model(Exponential(1.0, 0.2), 0.1)
    Y = simulate(model.cov, X, 300, 0, nugget=0.1)
    rows = vecchia_rows(X, model.cov, 10)
    scores, informations = [], []
    for y in Y.T:
        value, moments = data_of(X, y).vecchia(model, rows)
        scores.append(value.gradient)
        informations.append(moments.information(np.ones(1)))
    expected = np.mean(informations, axis=0)
    assert abs(np.mean(scores, axis=0)).max() < 4 * np.sqrt(np.diagonal(expected).max() / 300)
    np.testing.assert_allclose(np.cov(np.transpose(scores)), expected, atol=0.35 * np.diagonal(expected).max())
    np.testing.assert_allclose(np.diagonal(np.cov(np.transpose(scores))), np.diagonal(expected), rtol=0.35)


# Parts


def test_some_rows_stand_for_all():
    X, y = problem(1500)
    model, data = Model(Matern(2.0, 0.3, 1.5), 0.05), data_of(X, y, "constant")
    rows = vecchia_rows(X, model.cov, 10)
    all_of_them = vecchia_moments(model, rows, data.places.noise, data.B)
    estimates = [
        vecchia_moments(model, rows.some(300, seed), data.places.noise, data.B).log_determinant for seed in range(20)
    ]
    error = np.std(estimates) / 20**0.5
    assert abs(np.mean(estimates) - all_of_them.log_determinant) < 4 * error
    assert rows.some(5000) is rows


def test_rows_are_found_once_where_distances_are_the_same():
    X, _ = problem(300)
    rows = vecchia_rows(X, Exponential(1.0, 0.3), 10)
    assert vecchia_rows(X, Matern(2.0, 0.7, 1.5), 10, known=rows) is rows
    stretched = Exponential(1.0, (0.3, 3.0))
    found, alone = vecchia_rows(X, stretched, 10, known=rows), vecchia_rows(X, stretched, 10)
    np.testing.assert_array_equal(found.tail, alone.tail)
    assert (found.tail != rows.tail).any()


def test_many_small_triangular_systems(xp):
    rng = np.random.default_rng(0)
    L = np.tril(rng.standard_normal((5, 7, 7))) + 5 * np.eye(7)
    B = rng.standard_normal((5, 7, 3))
    solved = to_host(forward(xp.asarray(L), xp.asarray(B)))
    np.testing.assert_allclose(L @ solved, B, atol=1e-12)
    solved = to_host(backward(xp.asarray(L), xp.asarray(B)))
    np.testing.assert_allclose(L.swapaxes(1, 2) @ solved, B, atol=1e-12)


def test_parameters_are_read_and_replaced_in_one_order():
    for cov, nugget in MODELS:
        model = Model(cov, nugget, NAMES)
        again = model.at(model.theta)
        np.testing.assert_allclose(again.theta, model.theta)
        doubled = model.at(model.theta + np.log(2))
        assert [free.value for free in doubled.free] == pytest.approx([2 * free.value for free in model.free])
        names = [free.name for free in model.free]
        assert len(set(names)) == len(names)
    assert Model(*MODELS[0]).names == ["variance", "length_scale", "nugget"]
    assert Model(*MODELS[2]).names[:3] == ["terms[0].variance", "terms[0].length_scale[0]", "terms[0].length_scale[1]"]
    assert Model(*MODELS[2]).names[-1] == "terms[2].nugget"  # not the measurement error


def test_a_value_is_a_float_that_travels():
    import pickle

    value = pickle.loads(pickle.dumps(LogLikelihood(-3.0, 0.1, np.ones(2), None, ["a", "b"])))
    assert value == -3.0 and value.standard_error == 0.1 and value.names == ["a", "b"] and (value.gradient == 1).all()


def test_kriging_tells_the_likelihood_of_its_data(xp):
    X, y = problem()
    kriging = Kriging(Matern(2.0, 0.3, 1.5), 0.05, "linear", restricted=True).fit(xp.asarray(X), xp.asarray(y))
    ours = kriging.log_marginal_likelihood(gradient=True)
    other = log_likelihood(Matern(2.0, 0.3, 1.5), X, y, 0.05, "linear", restricted=True, gradient=True)
    assert ours == pytest.approx(other, abs=1e-8)
    np.testing.assert_allclose(ours.gradient, other.gradient, atol=1e-6)


@pytest.mark.parametrize("arguments, words", [
    ({"nugget": -1}, "nugget: expected"),
    ({"parameters": ["sill"]}, "parameters: expected some of"),
    ({"trend": "linear", "restricted": True, "X": [[0.0], [1.0]], "y": [1.0, 2.0]}, "more places than the 2 trend"),
    ({"y": [1.0, np.nan, 2.0]}, "NaN"),
    ({"X": [[0.0], [0.0], [1.0]]}, "one value a site where nugget is 0"),
])  # fmt: skip
def test_bad_arguments_are_refused(arguments, words):
    usual = {"cov": Exponential(), "X": [[0.0], [0.5], [1.0]], "y": [1.0, 2.0, 4.0]}
    with pytest.raises(ValueError, match=words):
        log_likelihood(**{**usual, **arguments})
