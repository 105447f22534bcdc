"""GeneralizedKriging as an estimator: parameters recovered, predictive distributions, scikit-learn, refusals."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from h2gpu.covariance import Exponential, Expression, Matern, Nugget
from h2gpu.statistics import GeneralizedKriging, simulate
from h2gpu.statistics.generalized import predictive
from h2gpu.statistics.generalized.likelihoods import Binomial, Gamma, Poisson, StudentT

COV = Matern(0.8, 0.15, 1.5)


def data(n=300, seed=1):
    X = np.random.default_rng(seed).random((n, 2))
    return X, simulate(COV, X, 1, seed)[:, 0] + 0.5, np.random.default_rng(seed + 1)


def samples(name, f, rng):
    if name == "poisson":
        return rng.poisson(4 * np.exp(f))
    if name == "binomial":
        return rng.binomial(8, 1 / (1 + np.exp(-f)))
    return rng.gamma(3.0, np.exp(f) / 3) if name == "gamma" else f + 0.3 * rng.standard_t(4, len(f))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_of_several_maxima_the_greatest_is_taken_and_the_fit_ends_in_its_mode():
    """Far observations: one maximum has them in the field, another in the tails. From the variogram alone −72.5."""
    rng = np.random.default_rng(11)
    X = rng.random((70, 2))
    y = simulate(Exponential(1.0, 0.3), X, random_state=11)[:, 0] + 0.3 * rng.standard_t(2, 70)
    wanted = ["variance", "length_scale", "scale"]
    k = GeneralizedKriging(Exponential(), "student-t", df=2.0, fit_parameters=wanted).fit(X, y)
    assert float(k.estimation_.value) > -70.4
    assert abs(float(k.log_marginal_likelihood()) - float(k.estimation_.value)) < 1e-6


@pytest.mark.parametrize("name", ["poisson", "binomial", "gamma", "student-t"])
def test_parameters_are_recovered_and_predictions_calibrated(name):
    X, f, rng = data()
    y, size = samples(name, f, rng), {"poisson": 4.0, "binomial": 8.0}.get(name)
    column = {"poisson": {"exposure": 2}, "binomial": {"trials": 2}}.get(name, {})
    Z = X if size is None else np.column_stack([X, np.full(len(X), size)])
    found = GeneralizedKriging(Matern(1.0, 1.0, 1.5), name, fit_parameters=True, **column).fit(Z[:200], y[:200])
    assert found.converged_
    for one, truth in (("shape", 3.0), ("scale", 0.3)):
        if one in found.parameters_:
            low, high = found.parameter_intervals_[one]
            assert low / 1.1 < truth < high * 1.1
    _, low, high = found.predict(Z[200:], interval=0.9, observations=True)
    assert 0.8 < np.mean((low <= y[200:]) & (y[200:] <= high)) <= 1
    m, std = found.predict_latent(Z[200:], return_std=True)
    assert 0.8 < np.mean(abs(m - f[200:]) < 1.645 * std) < 0.98
    assert found.score(Z[200:], y[200:]) > 0.1
    known = GeneralizedKriging(COV, name, shape=3.0, scale=0.3, **column).fit(Z[:200], y[:200])
    worse = GeneralizedKriging(Matern(0.8, 1.5, 1.5), name, shape=3.0, scale=0.3, **column).fit(Z[:200], y[:200])
    gain = found.log_marginal_likelihood() - known.log_marginal_likelihood()
    assert -1e-6 < gain < 7  # half of what chi-squared of 3 degrees of freedom exceeds once in 300 times
    assert known.log_scores(Z[200:], y[200:]).mean() > worse.log_scores(Z[200:], y[200:]).mean()


LIKELIHOODS = [Poisson(), Binomial(), Gamma(2.5), StudentT(0.3, 4.0)]
M, V = np.array([0.3, 1.0, -0.5]), np.array([0.04, 0.5, 1.5])


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_predictive_distributions_are_those_of_samples(likelihood):
    """Many draws tell means, variances, probabilities to a part in some hundred."""
    rng, n = np.random.default_rng(0), 200_000
    size = np.full(3, 6.0)
    eta = M + np.sqrt(V) * rng.standard_normal((n, 3))
    response = likelihood.response(eta, size)
    y = {
        Poisson: lambda: rng.poisson(response),
        Binomial: lambda: rng.binomial(6, response / 6),
        Gamma: lambda: rng.gamma(2.5, response / 2.5),
        StudentT: lambda: eta + 0.3 * rng.standard_t(4, eta.shape),
    }[type(likelihood)]()
    if isinstance(likelihood, Gamma):
        y, response = y / 6, response / 6
        size = np.ones(3)
    mean, spread, within = predictive.moments(likelihood, M, V, size)
    np.testing.assert_allclose(mean, y.mean(axis=0), rtol=0.02, atol=0.01)
    np.testing.assert_allclose(spread + within, y.var(axis=0), rtol=0.12)
    t = np.quantile(y, 0.7, axis=0, method="inverted_cdf")
    np.testing.assert_allclose(predictive.cdf(likelihood, t, M, V, size), (y <= t).mean(axis=0), atol=0.005)
    q = predictive.quantile(likelihood, 0.7, M, V, size)
    np.testing.assert_allclose(q, t, rtol=0.02, atol=0.01)


@pytest.mark.parametrize("likelihood", [Poisson(), Binomial()], ids=repr)
@pytest.mark.parametrize("size", [1.0, 30.0])
def test_probabilities_sum_to_one_and_are_differences_of_the_cdf(likelihood, size):
    top = int(size) if isinstance(likelihood, Binomial) else 4000
    y = np.arange(top + 1.0)
    n = len(y)
    p = np.exp(predictive.log_density(likelihood, y, np.full(n, 0.3), np.full(n, 0.7), np.full(n, size)))
    assert abs(p.sum() - 1) < 1e-5
    F = predictive.cdf(likelihood, y, np.full(n, 0.3), np.full(n, 0.7), np.full(n, size))
    np.testing.assert_allclose(np.cumsum(p), F, atol=1e-5)


@pytest.mark.parametrize("m, scale", [(0.0, 0.3), (0.0, 0.001), (8.0, 0.01)])
def test_densities_of_narrow_likelihoods_and_far_observations(m, scale):
    """Of scale 10⁻³ the density is the normal one, and at 8 standard deviations still a number."""
    y = np.array([0.5])
    found = predictive.log_density(StudentT(scale, 1e9), y, np.array([m]), np.ones(1), np.ones(1))
    np.testing.assert_allclose(found, stats.norm.logpdf(0.5, m, np.sqrt(1 + scale**2)), atol=1e-5)


@pytest.mark.parametrize(
    "kriging", [GeneralizedKriging(Exponential(), "student-t"), GeneralizedKriging(Exponential(), "gamma")], ids=repr
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_checks_pass(kriging):
    results = check_estimator(kriging, on_fail=None, on_skip=None)
    assert not {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}


def test_clones_and_cross_validation():
    X, f, rng = data(150)
    Z, y = np.column_stack([X, np.full(150, 4.0)]), samples("poisson", f, rng)
    kriging = GeneralizedKriging(COV, "poisson", exposure=-1)
    assert clone(kriging).get_params() == kriging.get_params()
    assert cross_val_score(kriging, Z, y, cv=3).min() > 0.1
    again, other = kriging.fit(Z, y), GeneralizedKriging(COV, "poisson", exposure=0).fit(Z[:, [2, 0, 1]], y)
    np.testing.assert_allclose(again.predict(Z), other.predict(Z[:, [2, 0, 1]]))
    np.testing.assert_allclose(8 * again.predict(Z), again.predict(Z * [1, 1, 8]))


def test_pandas_columns_and_missing_observations():
    pd = pytest.importorskip("pandas")
    X, f, rng = data(120)
    y = 1.0 * samples("binomial", f, rng)
    frame = pd.DataFrame({"east": X[:, 0], "trials": 8.0, "north": X[:, 1], "height": f})
    kriging = GeneralizedKriging(COV, "binomial", ["height"], trials="trials", missing="skip")
    y[::5] = np.nan
    kept = ~np.isnan(y)
    a = kriging.fit(frame, y).predict(frame)
    b = GeneralizedKriging(COV, "binomial", ["height"], trials="trials").fit(frame[kept], y[kept]).predict(frame)
    np.testing.assert_allclose(a, b)
    assert ((a > 0) & (a < 8)).all()
    values = kriging.predict_cdf(frame, 7.0)
    assert ((values > 0) & (values < 1)).all()
    np.testing.assert_allclose(kriging.predict_cdf(frame, 8.0), 1)


@pytest.mark.slow
def test_many_places_take_vecchia_and_the_hierarchical_matrix(monkeypatch):
    from h2gpu.statistics import systems
    from h2gpu.statistics.generalized import estimation

    X, f, rng = data(250)
    y = samples("gamma", f, rng)
    exact = GeneralizedKriging(Matern(1.0, 1.0, 1.5), "gamma", fit_parameters=True).fit(X, y)
    monkeypatch.setattr(estimation, "EXACT", 100)
    monkeypatch.setattr(estimation, "SOME", 200)
    monkeypatch.setattr(systems, "DENSE", 0)
    many = GeneralizedKriging(Matern(1.0, 1.0, 1.5), "gamma", fit_parameters=True).fit(X, y)
    for name, value in exact.parameters_.items():
        assert abs(np.log(many.parameters_[name] / value)) < 0.5 * exact.parameter_errors_[name]
    told = many.log_marginal_likelihood()
    assert told.standard_error > 0 and abs(told - exact.log_marginal_likelihood()) < 0.2 + 4 * told.standard_error


def test_a_nugget_of_the_covariance_and_numbers_by_name():
    X, f, rng = data(200)
    y = rng.poisson(np.exp(f + 0.4 * rng.standard_normal(200)))
    found = GeneralizedKriging(COV + Nugget(0.1), "poisson", fit_parameters=["nugget"]).fit(X, y)
    assert list(found.parameters_) == ["terms[1].nugget"] and found.cov_.terms[0] == COV
    shape = GeneralizedKriging(COV, "gamma", fit_parameters="shape").fit(X, np.exp(f) * rng.gamma(3, 1 / 3, 200))
    assert list(shape.parameters_) == ["shape"] and 1.5 < shape.likelihood_.shape < 6


def test_what_the_data_do_not_tell_is_told():
    X, _, rng = data(60)
    with pytest.raises(ValueError, match="expected observations that vary"):
        GeneralizedKriging(Exponential(), "poisson", fit_parameters=True).fit(X, np.zeros(60))
    with pytest.warns(ConvergenceWarning, match="exceeds the extent"):
        found = GeneralizedKriging(Exponential(), fit_parameters=True).fit(X, rng.poisson(np.exp(9 * X[:, 0])))
    assert not found.converged_


@pytest.mark.parametrize(
    "options, y, message",
    [
        ({"likelihood": "normal"}, [1, 2, 3, 4], "likelihood: expected one of poisson"),
        ({}, [1, -2, 3, 4], "whole numbers ≥ 0 .* got -2"),
        ({}, [1, 2.5, 3, 4], "whole numbers ≥ 0 .* got 2.5"),
        ({"likelihood": "binomial"}, [0, 1, 2, 1], "as many successes as trials, got 2 of 1 in row 2"),
        ({"likelihood": "binomial"}, [0, 0.5, 1, 1], "whole numbers"),
        ({"likelihood": "gamma"}, [1, 0, 2, 3], "above 0 .* got 0"),
        ({"likelihood": "gamma", "shape": 0.0}, [1, 1, 2, 3], "shape: expected"),
        ({"likelihood": "student-t", "df": -1.0}, [1, 1, 2, 3], "df: expected"),
        ({"likelihood": "gamma", "exposure": 1}, [1, 1, 2, 3], 'exposure: expected likelihood="poisson"'),
        ({"trials": 1}, [1, 1, 2, 3], 'trials: expected likelihood="binomial"'),
        ({"exposure": 5}, [1, 1, 2, 3], "expected a name or an index of the 2 columns"),
        ({"exposure": 0}, [1, 1, 2, 3], "exposure: expected numbers above 0, got 0"),
        ({"exposure": 1, "trend": [1]}, [1, 1, 2, 3], "columns other than the one of exposure"),
        ({"missing": "drop"}, [1, 1, 2, 3], "missing: expected"),
        ({"rtol": 2.0}, [1, 1, 2, 3], "rtol: expected a number below 1"),
        ({"neighbours": 0}, [1, 1, 2, 3], "neighbours: expected"),
        ({"mean": np.nan}, [1, 1, 2, 3], "mean: expected"),
        ({"fit_parameters": ["nugget"]}, [1, 1, 2, 3], "expected a Nugget within it"),
        ({"fit_parameters": ["smoothness"]}, [1, 1, 2, 3], "expected a covariance with smoothness"),
        ({"cov": Expression("exp(-r)"), "fit_parameters": True}, [1, 1, 2, 3], "no numbers that can be estimated"),
    ],
)
def test_refusals(options, y, message):
    X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 0.5], [3.0, 1.5]])
    with pytest.raises(ValueError, match=message):
        GeneralizedKriging(**{"cov": Exponential(), **options}).fit(X, np.array(y, float))


def test_refusals_of_predictions():
    X, f, rng = data(50)
    found = GeneralizedKriging(COV, "poisson").fit(X, samples("poisson", f, rng))
    with pytest.raises(ValueError, match="one of return_std and interval"):
        found.predict(X, return_std=True, interval=0.9)
    with pytest.raises(ValueError, match="interval: expected a level"):
        found.predict(X, interval=1.5)
    with pytest.raises(ValueError, match="values: expected one number or 50"):
        found.predict_cdf(X, np.ones(3))
    with pytest.raises(ValueError, match="whole numbers"):
        found.score(X, np.full(50, 0.5))
