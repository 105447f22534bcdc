"""Laplace's approximation: the mode is stationary, equals a dense one written here, integrals and Gaussian limits."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit, roots_hermitenorm

from h2gpu.covariance import Matern
from h2gpu.statistics import GeneralizedKriging, Kriging, simulate, systems
from h2gpu.statistics.generalized.likelihoods import Binomial, Gamma, Poisson, StudentT
from h2gpu.statistics.generalized.marginal import Latent
from h2gpu.statistics.generalized.mode import mode
from h2gpu.statistics.generalized.observed import Observed
from h2gpu.statistics.likelihood.parameters import Model
from h2gpu.statistics.likelihood.vecchia_moments import vecchia_rows

COV = Matern(0.8, 0.2, 1.5)
LOG_DENSITY = {
    "poisson": lambda y, eta, size: stats.poisson.logpmf(y, size * np.exp(eta)),
    "binomial": lambda y, eta, size: stats.binom.logpmf(y, size.astype(int), expit(eta)),
    "gamma": lambda y, eta, size: stats.gamma.logpdf(y, 2.5, scale=np.exp(eta) / 2.5),
    "student-t": lambda y, eta, size: stats.t.logpdf(y, 4.0, eta, 0.3),
}
LIKELIHOODS = {"poisson": Poisson(), "binomial": Binomial(), "gamma": Gamma(2.5), "student-t": StudentT(0.3, 4.0)}
OPTIONS = {"shape": 2.5, "scale": 0.3, "df": 4.0}


def drawn(name, eta, size, rng):
    """Observations of a likelihood."""
    if name == "poisson":
        return 1.0 * rng.poisson(size * np.exp(eta))
    if name == "binomial":
        return 1.0 * rng.binomial(size.astype(int), expit(eta))
    return rng.gamma(2.5, np.exp(eta) / 2.5) if name == "gamma" else eta + 0.3 * rng.standard_t(4, len(eta))


def problem(name, n=30, seed=0):
    """Sites, observations, sizes, and the options of the estimator for X with the sizes in its last column."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    size = {"poisson": rng.uniform(0.5, 3, n), "binomial": 1.0 * rng.integers(1, 7, n)}.get(name, np.ones(n))
    column = {"poisson": {"exposure": 2}, "binomial": {"trials": 2}}.get(name, {})
    y = drawn(name, simulate(COV, X, 1, seed)[:, 0] + 0.4, size, rng)
    return X, y, size, column


def table(X, size, column):
    return np.column_stack([X, size]) if column else X


def dense_laplace(name, X, y, size):
    """Independent: Ψ maximized over z = L x and β by a general optimizer, curvature by differences: ℓ_L, η̂, w."""
    L, f = np.linalg.cholesky(COV(X)), LOG_DENSITY[name]
    n = len(y)

    def negative(x):
        return -(f(y, L @ x[:n] + x[n], size).sum() - 0.5 * x[:n] @ x[:n])

    x = minimize(negative, np.append(np.zeros(n), 0.4), method="BFGS", options={"gtol": 1e-6, "maxiter": 2000}).x
    eta, h = L @ x[:n] + x[n], 1e-4
    if name == "student-t":
        W = np.full(n, 5 / (7 * 0.09))
    else:
        W = -(f(y, eta + h, size) - 2 * f(y, eta, size) + f(y, eta - h, size)) / h**2
    B = np.eye(n) + np.sqrt(W)[:, None] * COV(X) * np.sqrt(W)
    return -negative(x) - 0.5 * np.linalg.slogdet(B)[1], eta, W


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_equals_a_dense_laplace_approximation(name, way):
    X, y, size, column = problem(name)
    value, eta, W = dense_laplace(name, X, y, size)
    found = GeneralizedKriging(COV, name, **OPTIONS, **column).fit(table(X, size, column), y)
    np.testing.assert_allclose(found.mode_, eta, atol=2e-3)
    told = found.log_marginal_likelihood()
    assert abs(told - value) < 1e-3 + 5 * told.standard_error
    T = np.random.default_rng(5).random((7, 2))
    K, k = COV(X) + np.diag(1 / W), COV(X, T)
    solved = np.linalg.solve(K, np.column_stack([k, np.ones(len(X))]))
    u = 1 - solved[:, :-1].T @ np.ones(len(X))
    v = 0.8 - np.einsum("ij,ij->j", k, solved[:, :-1]) + u**2 / solved[:, -1].sum()
    mean, std = found.predict_latent(table(T, np.ones(7), column), return_std=True)
    np.testing.assert_allclose(std, np.sqrt(v), rtol=2e-3)
    a = found.weights_
    np.testing.assert_allclose(mean, found.trend_coefficients_[0] + k.T @ a, atol=1e-6)


@pytest.mark.parametrize("name", LIKELIHOODS)
@pytest.mark.parametrize("trend", [None, "constant", "linear"])
def test_the_mode_is_stationary(name, trend, way):
    X, y, size, column = problem(name)
    mean = 0.0 if trend else 0.4
    found = GeneralizedKriging(COV, name, trend, mean=mean, **OPTIONS, **column).fit(table(X, size, column), y)
    assert found.converged_
    g = LIKELIHOODS[name].slope(y, found.mode_, size)
    np.testing.assert_allclose(found.weights_, g, atol=1e-4)
    F = {None: np.zeros((30, 0)), "constant": np.ones((30, 1)), "linear": np.column_stack([np.ones(30), X])}[trend]
    np.testing.assert_allclose(F.T @ found.weights_, 0, atol=1e-6)
    level = 0.4 if trend is None else F @ found.trend_coefficients_
    np.testing.assert_allclose(found.mode_, level + COV(X) @ g, atol=1e-3)


@pytest.mark.parametrize("name", LIKELIHOODS)
@pytest.mark.parametrize("restricted", [False, True])
@pytest.mark.parametrize("vecchia", [False, True])
def test_gradients_are_those_of_differences(name, restricted, vecchia):
    X, y, size, _ = problem(name)
    latent = Latent(Observed.of(X, y, size), np.full((30, 1), 30**-0.5), X, restricted)
    rows = vecchia_rows(X, COV, 29) if vecchia else None
    model, likelihood = Model(COV, 1.0, ("variance", "length_scale")), LIKELIHOODS[name]
    value, _ = latent.with_gradient(model, likelihood, rows)
    theta, h = np.concatenate([model.theta, likelihood.theta]), 1e-4

    def at(t):
        return float(latent.with_gradient(model.at(t[:2]), likelihood.at(t[2:]), rows)[0])

    differences = [(at(theta + h * e) - at(theta - h * e)) / (2 * h) for e in np.eye(len(theta))]
    np.testing.assert_allclose(value.gradient, differences, atol=1e-4)


@pytest.mark.parametrize("name", LIKELIHOODS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_marginal_likelihood_is_near_the_integral(name, n):
    """Laplace is exact where p(y | η) is Gaussian; counts of some ten are nearly. Quadrature is a product rule."""
    X, y, size, _ = problem(name, n, seed=3)
    size = size * (6 if name in ("poisson", "binomial") else 1)
    rng = np.random.default_rng(1)
    y = drawn(name, simulate(COV, X, 1, 1)[:, 0] + 0.4, np.round(size), rng) if name != "student-t" else y
    size = np.round(size)
    latent = Latent(Observed.of(X, y, size, 0.4), np.zeros((n, 0)), X)
    value = float(latent.with_gradient(Model(COV, 1.0, ("variance",)), LIKELIHOODS[name])[0])
    nodes, weights = roots_hermitenorm({1: 200, 2: 150, 3: 80}[n])
    weights = weights / weights.sum()
    grids = np.stack(np.meshgrid(*[nodes] * n, indexing="ij"), axis=-1).reshape(-1, n)
    logs = LOG_DENSITY[name](y, 0.4 + grids @ np.linalg.cholesky(COV(X)).T, size).sum(axis=1)
    products = np.prod(np.stack(np.meshgrid(*[weights] * n, indexing="ij"), axis=-1).reshape(-1, n), axis=1)
    exact = np.log(products @ np.exp(logs - logs.max())) + logs.max()
    assert abs(value - exact) < (0.05 if name in ("poisson", "binomial") else 0.15) * n


def test_a_student_of_many_degrees_of_freedom_is_gaussian_kriging(way):
    X, y, _, _ = problem("student-t")
    T = np.random.default_rng(5).random((9, 2))
    wide = GeneralizedKriging(COV, "student-t", scale=0.3, df=1e9).fit(X, y)
    gauss = Kriging(COV, 0.09).fit(X, y)
    for a, b in zip(wide.predict(T, return_std=True), gauss.predict(T, return_std=True)):
        np.testing.assert_allclose(a, b, atol=2 * way)
    for a, b in zip(wide.predict(T, interval=0.9), gauss.predict(T, interval=0.9)):
        np.testing.assert_allclose(a, b, atol=4 * way)
    told = wide.log_marginal_likelihood()
    assert abs(told - gauss.log_marginal_likelihood()) < 1e-5 + 5 * told.standard_error


def test_a_gamma_of_large_shape_is_gaussian_kriging_of_logarithms():
    X, _, _, _ = problem("gamma")
    f = simulate(COV, X, 1, 0)[:, 0]
    for shape, within in ((1e4, 0.02), (1e6, 0.002)):
        y = np.exp(f + np.random.default_rng(0).standard_normal(30) / shape**0.5)
        T = np.random.default_rng(5).random((9, 2))
        found = GeneralizedKriging(COV, "gamma", shape=shape).fit(X, y).predict_latent(T, return_std=True)
        for a, b in zip(found, Kriging(COV, 1 / shape).fit(X, np.log(y)).predict(T, return_std=True)):
            np.testing.assert_allclose(a, b, atol=within)


def test_repeated_sites_are_one_place(way):
    """Counts at one place say what their sum says with the exposures' sum."""
    X, y, size, _ = problem("poisson")
    again = np.concatenate([X, X[:10]])
    more = np.random.default_rng(7).poisson(2.0, 10)
    twice = GeneralizedKriging(COV, "poisson", exposure=2)
    twice.fit(np.column_stack([again, np.append(size, np.ones(10))]), np.append(y, more))
    y[:10] += more
    size[:10] += 1
    once = GeneralizedKriging(COV, "poisson", exposure=2).fit(np.column_stack([X, size]), y)
    np.testing.assert_allclose(twice.mode_, once.mode_, atol=10 * way)


@pytest.mark.parametrize("df", [1.0, 2.0, 4.0])
def test_shorter_steps_save_what_whole_ones_lose(df):
    """Far outliers: Student's objective is not concave, and still rises to a stationary point."""
    X, y, _, _ = problem("student-t")
    y[::9] += 50
    observed, likelihood, Q = Observed.of(X, y, np.ones(30)), StudentT(0.3, df), np.full((30, 1), 30**-0.5)
    found = mode(observed, likelihood, Q, lambda noise: systems.dense_system(X, COV, noise))
    assert found.converged and found.steps < 200
    np.testing.assert_allclose(found.a, observed.slope(likelihood, found.eta), atol=1e-3)
