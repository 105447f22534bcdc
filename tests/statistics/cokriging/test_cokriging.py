"""Cokriging: the dense equations, both ways, what a second variable is worth, parameters found again."""

import numpy as np
import pytest
from sklearn.base import clone

from h2gpu.covariance import Coregionalization, Exponential, Matern, MultivariateMatern, Spherical
from h2gpu.statistics import CoKriging, Kriging, simulate
from h2gpu.statistics.cokriging.stacking import all_variables
from h2gpu.statistics.systems.variables import matrix_of

LINEAR = Coregionalization([[[1.0, 0.6], [0.6, 0.5]], [[0.5, -0.2], [-0.2, 1.0]]], [Exponential(1, 3), Spherical(1, 8)])
MATERN = MultivariateMatern((1.0, 4.0), 2.0, (0.5, 1.5), 0.8)
NUGGETS = 0.1, 0.3


def sample(cov, n=150, seed=0, missing=0.3):
    """X (n, 2) in a square of side 10, Y (n, p) with errors and a share of NaN, and the fields without."""
    rng, p = np.random.default_rng(seed), cov.variables
    X = 10 * rng.random((n, 2))
    Z = np.add(simulate(cov, all_variables(X, p), 1, seed)[:, 0].reshape(n, p), [5.0, -2.0])
    Y = Z + rng.standard_normal((n, p)) * np.sqrt(NUGGETS)
    Y[rng.random((n, p)) < missing] = np.nan
    return X, Y, Z


@pytest.mark.parametrize("cov", [LINEAR, MATERN], ids=["linear", "matern"])
@pytest.mark.parametrize("trend", [None, "constant"])
def test_predictions_are_those_of_the_dense_equations(cov, trend, way):
    X, Y, _ = sample(cov)
    new = 10 * np.random.default_rng(1).random((7, 2))
    mean, std = (
        CoKriging(cov, NUGGETS, trend, mean=(0.0, 0.0) if trend else (5.0, -2.0), std_rtol=0, rtol=1e-8)
        .fit(X, Y)
        .predict(new, return_std=True)
    )
    row, i = np.nonzero(np.isfinite(Y))
    S, T = np.column_stack([X[row], i]), all_variables(new, 2)
    K, k = cov(S) + np.diag(np.array(NUGGETS)[i]), cov(T, S)
    F, f = (np.eye(2)[A[:, 2].astype(int)] for A in (S, T))
    W = np.linalg.solve(K, np.column_stack([Y[row, i], F, k.T]))
    y, KF, Kk = W[:, 0], W[:, 1:3], W[:, 3:]
    beta = np.linalg.solve(F.T @ KF, F.T @ y) if trend else np.array([5.0, -2.0])
    expected = f @ beta + k @ (y - KF @ beta)
    variance = cov.variances(T) - np.einsum("ij,ji->i", k, Kk)
    if trend:
        u = f - k @ KF
        variance += np.einsum("ij,ij->i", u, np.linalg.solve(F.T @ KF, u.T).T)
    np.testing.assert_allclose(mean.ravel(), expected, atol=10 * way)
    np.testing.assert_allclose(std.ravel() ** 2, variance, atol=10 * way)


@pytest.mark.parametrize("cov", [LINEAR, MATERN], ids=["linear", "matern"])
def test_the_matrix_is_that_of_its_correlations(cov):
    X, Y, _ = sample(cov, 450)
    row, i = np.nonzero(np.isfinite(Y))
    S = np.column_stack([X[row], i])
    A, K = matrix_of(S, cov, 1e-6), cov(S)
    found = A @ np.eye(len(S))
    assert np.linalg.norm(found - K) <= 1e-6 * np.linalg.norm(K)
    np.testing.assert_allclose(A @ K[0], found @ K[0], rtol=1e-9)


def test_independent_variables_are_kriged_by_themselves():
    cov = Coregionalization([np.diag([1.0, 2.0])], [Exponential(1.0, 3.0)])
    X, Y, _ = sample(cov)
    both = CoKriging(cov, NUGGETS).fit(X, Y)
    for i, variance in enumerate((1.0, 2.0)):
        known = np.isfinite(Y[:, i])
        alone = Kriging(Exponential(variance, 3.0), NUGGETS[i]).fit(X[known], Y[known, i])
        found, expected = both.predict(X[:5], return_std=True), alone.predict(X[:5], return_std=True)
        np.testing.assert_allclose([part[:, i] for part in found], expected, rtol=1e-8)
    total = sum(
        Kriging(Exponential(v, 3.0), NUGGETS[i]).fit(X[k], Y[k, i]).log_marginal_likelihood()
        for i, v in enumerate((1.0, 2.0))
        for k in [np.isfinite(Y[:, i])]
    )
    assert both.log_marginal_likelihood() == pytest.approx(total, rel=1e-9)


def test_a_second_variable_helps_and_collocated_more():
    X, Y, Z = sample(MATERN, 300)
    Y[:150, 0] = np.nan  # the first is observed at half of the sites
    model = CoKriging(MATERN, NUGGETS).fit(X[:250], Y[:250])
    known = np.isfinite(Y[:250, 0])
    alone = Kriging(Matern(1.0, 2.0, 0.5), NUGGETS[0]).fit(X[:250][known], Y[:250, 0][known])
    _, single = alone.predict(X[250:], return_std=True)
    _, full = model.predict(X[250:], return_std=True)
    given = np.column_stack([np.full(50, np.nan), Y[250:, 1]])
    mean, collocated = model.predict(X[250:], return_std=True, collocated=given)
    has = np.isfinite(given[:, 1])
    assert (full[:, 0] < single).all() and (collocated[has, 0] < full[has, 0]).all()
    np.testing.assert_allclose(collocated[~has], full[~has], rtol=1e-9)
    assert abs((mean - Z[250:]) / collocated).max() < 5


def test_collocated_data_are_those_of_one_more_site():
    """Conditioning the errors of one target is full cokriging with its datum among the others."""
    X, Y, _ = sample(MATERN, 80)
    target, datum = np.array([[3.3, 4.4]]), np.array([[np.nan, -1.0]])
    found = CoKriging(MATERN, NUGGETS, None).fit(X, Y).predict(target, return_std=True, collocated=datum)
    full = CoKriging(MATERN, NUGGETS, None).fit(np.vstack([X, target]), np.vstack([Y, datum]))
    np.testing.assert_allclose(found, full.predict(target, return_std=True), rtol=1e-8)


STARTS = pytest.mark.parametrize("cov, start", [
    (MATERN, MultivariateMatern((1.0, 1.0), 100.0, (0.5, 1.5), 0.0)),
    (Coregionalization(LINEAR.matrices[:1], [Exponential(1, 3)]), Coregionalization([np.eye(2)], [Exponential()])),
], ids=["matern", "linear"])  # fmt: skip


@STARTS
def test_the_truth_lies_within_the_errors_told(cov, start):
    X, Y, _ = sample(cov, 220)
    model = CoKriging(start, fit_parameters=True).fit(X, Y)
    given = CoKriging(cov, NUGGETS).fit(X, Y)
    assert model.log_marginal_likelihood() > given.log_marginal_likelihood()
    assert model.estimation_.exact and abs(model.estimation_.value.gradient).max() < 0.05
    truth = {name: value for _, name, value in cov.numbers} | {f"nugget[{i}]": v for i, v in enumerate(NUGGETS)}
    truth |= {f"terms[0].{name}": value for name, value in truth.items()} | {"terms[0].parts[0].length_scale": 3.0}
    for name, (low, high) in model.estimation_.intervals(0.9995).items():
        assert low <= truth[name] <= high, name
    assert all(abs(np.log(found / true)) < 1.5 for found, true in zip(model.nugget_, NUGGETS))


@STARTS
def test_a_nugget_on_its_way_to_nothing_does_not_keep_the_others_from_their_maximum(cov, start):
    X, Y, _ = sample(cov, 160)
    model = CoKriging(start, fit_parameters=True).fit(X, Y)
    assert model.nugget_[0] < 1e-5 and abs(model.estimation_.value.gradient).max() < 0.05


@pytest.mark.slow
def test_estimation_of_many_is_vecchias():
    X, Y, Z = sample(MATERN, 1200)
    model = CoKriging(MultivariateMatern((1.0, 1.0), 1.0, (0.5, 1.5), 0.0), fit_parameters=True).fit(X[:1100], Y[:1100])
    assert not model.estimation_.exact
    assert model.cov_.correlation[0][1] == pytest.approx(0.8, abs=0.08)
    mean, std = model.predict(X[1100:], return_std=True)
    scaled = (mean - Z[1100:]) / std
    assert (abs(scaled.mean(axis=0)) < 0.4).all() and (abs(scaled.std(axis=0) - 1) < 0.3).all()


def test_samples_have_the_covariance_of_the_errors():
    X, Y, _ = sample(LINEAR, 60)
    model = CoKriging(LINEAR, NUGGETS).fit(X, Y)
    new = np.array([[1.0, 2.0], [8.0, 8.0]])
    mean, std = model.predict(new, return_std=True)
    Z = model.sample_y(new, 3000, random_state=0)
    assert Z.shape == (2, 2, 3000)
    np.testing.assert_allclose(Z.mean(axis=2), mean, atol=0.1)
    np.testing.assert_allclose(Z.std(axis=2), std, rtol=0.06)


def test_it_is_an_estimator():
    X, Y, _ = sample(LINEAR, 60)
    model = CoKriging(LINEAR, nugget=(0.1, 0.2), trend="linear")
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    fitted = copy.fit(X, Y)
    assert fitted is copy and fitted.trend_coefficients_.shape == (2, 3) and 0.3 < fitted.score(X, Y) < 1
    np.testing.assert_allclose(fitted.predict(X[:3].tolist()), fitted.predict(X[:3]))
    _, field = fitted.predict(X[:3], return_std=True)
    _, observed = fitted.predict(X[:3], return_std=True, observations=True)
    np.testing.assert_allclose(observed**2 - field**2, np.broadcast_to([0.1, 0.2], (3, 2)))


@pytest.mark.parametrize("make, words", [
    (lambda X, Y: CoKriging(Exponential()).fit(X, Y), "cov: expected a Coregionalization or MultivariateMatern"),
    (lambda X, Y: CoKriging(LINEAR, nugget=(1, 2, 3)).fit(X, Y), "nugget: expected one number or 2"),
    (lambda X, Y: CoKriging(LINEAR, nugget=-1).fit(X, Y), "nugget: expected a finite number ≥ 0"),
    (lambda X, Y: CoKriging(LINEAR, mean=(1, 2, 3)).fit(X, Y), "mean: expected a finite number or 2"),
    (lambda X, Y: CoKriging(LINEAR, rtol=2).fit(X, Y), "rtol: expected a number below 1"),
    (lambda X, Y: CoKriging(LINEAR, neighbours=0).fit(X, Y), "neighbours: expected a positive integer"),
    (lambda X, Y: CoKriging(LINEAR).fit(X, Y[:, :1]), r"Y: expected shape \(40, 2\), a column a variable"),
    (lambda X, Y: CoKriging(LINEAR).fit(X[:, :1], Y), "X: expected 2 coordinates as for cov, got 1"),
    (lambda X, Y: CoKriging(LINEAR).fit(X, Y * [np.nan, 1]), "NaN for all of column 0"),
    (lambda X, Y: CoKriging(LINEAR).fit(X * 0, Y), "X: expected different sites"),
    (lambda X, Y: CoKriging(LINEAR).fit(X, Y).predict(X[:, :1]), "X: expected 2 coordinates as in fit"),
    (lambda X, Y: CoKriging(LINEAR).fit(X, Y).predict(X, collocated=Y[:3]), r"collocated: expected shape \(40, 2\)"),
    (lambda X, Y: CoKriging(LINEAR).fit(X, Y[:, 0]), r"Y: expected shape \(40, 2\), a column a variable, got \(40,\)"),
    (lambda X, Y: CoKriging(LINEAR).fit(X[:, 0], Y), r"X: expected shape \(n, dim\), got \(40,\)"),
    (lambda X, Y: CoKriging(LINEAR, trend=[0]).fit(X, Y), 'trend: expected None, "constant", "linear" or a function'),
    (lambda X, Y: CoKriging(LINEAR).fit(X, Y).predict(X, True, interval=0.9), "expected one of return_std and int"),
    (lambda X, Y: CoKriging(LINEAR, fit_parameters=["smoothness"]).fit(X, Y), "smoothness"),
    (lambda X, Y: matrix_of(np.zeros((1, 3)), LINEAR + Exponential(), 1e-3), "several variables and nuggets as terms"),
], ids=range(18))  # fmt: skip
def test_bad_arguments_are_told(make, words):
    X, Y, _ = sample(LINEAR, 40)
    with pytest.raises(ValueError, match=words):
        make(X, Y)
