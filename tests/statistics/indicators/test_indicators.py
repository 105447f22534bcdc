"""Indicator kriging: probabilities are ordered, exact at sites, and the kriging of indicators."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from kriging_problems import problem
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

from h2gpu.covariance import Exponential, Nugget, Spherical, on_sphere
from h2gpu.statistics import IndicatorKriging, Kriging, variogram
from h2gpu.statistics.indicators import distributions
from h2gpu.statistics.variography.fitting import fitted

COV = Exponential(0.2, 0.3)


@pytest.mark.parametrize("trend", [None, "constant", "linear"])
def test_probabilities_are_the_kriging_of_indicators(way, trend):
    X, y, T = problem(150)
    found = IndicatorKriging(COV, [3.0, 4.0, 5.0], nugget=0.02, trend=trend).fit(X, y)
    raw = found.predict_cdf(T, corrected=False)
    for k, z in enumerate(found.thresholds_):
        one = Kriging(COV, 0.02, trend, mean=0.0 if trend else float((y <= z).mean())).fit(X, 1.0 * (y <= z))
        np.testing.assert_allclose(raw[:, k], one.predict(T), atol=way)
    np.testing.assert_allclose(found.marginal_, [(y <= z).mean() for z in (3, 4, 5)])
    np.testing.assert_array_equal(found.predict_cdf(T), distributions.ordered(raw))


def test_simple_kriging_of_indicators_is_the_dense_formula():
    X, y, T = problem(80)
    K, k = COV(X) + 0.02 * np.eye(80), COV(X, T)
    for z, F in zip((3.5, 4.5), IndicatorKriging(COV, [3.5, 4.5], nugget=0.02, trend=None).fit(X, y).predict_cdf(T).T):
        p = (y <= z).mean()
        np.testing.assert_allclose(F, np.clip(p + k.T @ np.linalg.solve(K, (y <= z) - p), 0, 1), atol=0.05)
    raw = IndicatorKriging(COV, [3.5], nugget=0.02, trend=None).fit(X, y).predict_cdf(T, corrected=False)[:, 0]
    p = (y <= 3.5).mean()
    np.testing.assert_allclose(raw, p + k.T @ np.linalg.solve(K, (y <= 3.5) - p), atol=1e-10)


def test_distributions_are_distributions_and_exact_at_sites(way):
    X, y, T = problem(150)
    kriging = IndicatorKriging([Exponential(0.2, 0.1 * (k + 1)) for k in range(9)]).fit(X, y)
    F = kriging.predict_cdf(np.concatenate([T, X]))
    assert (np.diff(F, axis=1) >= 0).all() and F.min() >= 0 and F.max() <= 1
    np.testing.assert_allclose(F[len(T) :], y[:, None] <= kriging.thresholds_, atol=100 * way)
    q = kriging.predict_quantiles(T, [0.05, 0.5, 0.95])
    assert (np.diff(q, axis=1) >= 0).all() and q.min() >= y.min() and q.max() <= y.max()
    mean = kriging.predict(T)
    assert (mean >= y.min()).all() and (mean <= y.max()).all()
    truth = Kriging(Exponential(2.0, 0.3)).fit(X, y).predict(T)
    assert np.corrcoef(mean, truth)[0, 1] > 0.9
    np.testing.assert_allclose(kriging.predict_exceedance(T, kriging.thresholds_[4]), 1 - F[: len(T), 4], atol=1e-12)


def test_far_from_all_sites_the_distribution_is_that_of_the_data():
    X, y, _ = problem(100)
    simple = IndicatorKriging(COV, trend=None).fit(X, y)
    np.testing.assert_allclose(simple.predict_cdf([[1e3, 1e3]])[0], simple.marginal_, atol=1e-12)
    assert simple.predict([[1e3, 1e3]])[0] == pytest.approx(y.mean(), rel=0.02)
    np.testing.assert_allclose(simple.predict_quantiles([[1e3, 1e3]], simple.marginal_)[0], simple.thresholds_)


def test_scale_of_the_variances_does_not_matter_and_equal_models_share_a_solution():
    X, y, T = problem(60)
    one = IndicatorKriging(COV, nugget=0.1).fit(X, y)
    other = IndicatorKriging([10.0 * COV] * 9, nugget=[1.0] * 9).fit(X, y)
    np.testing.assert_allclose(one.predict_cdf(T), other.predict_cdf(T), atol=1e-9)
    assert len(one._solved) == len(other._solved) == 1
    two = IndicatorKriging([COV] * 5 + [2.0 * COV] * 4, nugget=0.1).fit(X, y)
    assert [solved.members for solved in two._solved] == [[0, 1, 2, 3, 4], [5, 6, 7, 8]]


def test_variograms_are_fitted_threshold_by_threshold():
    X, y, T = problem(200)
    kriging = IndicatorKriging(Spherical(0.2, 0.5), [3.5, 4.5], fit_variograms=True).fit(X, y)
    for k, z in enumerate((3.5, 4.5)):
        expected = fitted(variogram(X, 1.0 * (y <= z)), Spherical(0.2, 0.5), 0.0)
        assert (kriging.covs_[k], kriging.nuggets_[k]) == (expected.cov, expected.nugget)
    F = kriging.predict_cdf(T)
    assert ((F >= 0) & (F <= 1)).all() and (F[:, 0] <= F[:, 1]).all()


def test_smooth_indicators_have_variograms_too():
    """All pairs of the first class are alike. Where the variance counts, in simple kriging, its failure is told."""
    X = np.random.default_rng(0).random((60, 2))
    y, T = np.sin(6 * X[:, 0]), [[0.25, 0.5], [0.8, 0.5]]
    given = {"thresholds": [-0.5, 0.5], "fit_variograms": True}
    P = IndicatorKriging(Spherical(), **given).fit(X, y).predict_exceedance(T, 0.5)
    assert P[0] > 0.9 and P[1] < 0.1
    with pytest.warns(ConvergenceWarning, match="threshold 0.5: variogram: length_scale"):
        IndicatorKriging(Spherical(), **given, trend=None).fit(X, y)


def test_weights_repeats_and_gaps():
    X, y, T = problem(50)
    twice, values = np.r_[X, X[:5]], np.r_[y, y[:5] + 1]
    w = np.linspace(1, 2, 55)
    found = IndicatorKriging(COV, [4.0], nugget=0.1).fit(twice, values, w).predict_cdf(T, corrected=False)
    np.testing.assert_allclose(found[:, 0], Kriging(COV, 0.1).fit(twice, 1.0 * (values <= 4), w).predict(T), atol=1e-9)
    gaps = np.where(np.arange(50) % 7 == 2, np.nan, y)
    skipping = IndicatorKriging(COV, missing="skip", nugget=0.1).fit(X, gaps)
    known = np.isfinite(gaps)
    expected = IndicatorKriging(COV, nugget=0.1).fit(X[known], y[known])
    np.testing.assert_array_equal(skipping.predict(T), expected.predict(T))


def test_trend_columns_by_name():
    pandas = pytest.importorskip("pandas")
    X, y, T = problem(60)
    tables = [pandas.DataFrame({"x": Z[:, 0], "y": Z[:, 1], "h": np.sin(9 * Z[:, 1])}) for Z in (X, T)]
    named = IndicatorKriging(COV, [4.0], nugget=0.1, trend=["linear", "h"]).fit(tables[0], y)
    index = IndicatorKriging(COV, [4.0], nugget=0.1, trend=["linear", 2]).fit(tables[0].to_numpy(), y)
    np.testing.assert_allclose(named.predict_cdf(tables[1]), index.predict_cdf(tables[1].to_numpy()))


# Distributions


@given(arrays(np.float64, (4, 6), elements=st.floats(-0.5, 1.5)))
@settings(max_examples=50, deadline=None)
def test_order_correction_is_a_projection_onto_distributions(F):
    G = distributions.ordered(F)
    assert (np.diff(G, axis=1) >= 0).all() and G.min() >= 0 and G.max() <= 1
    np.testing.assert_allclose(distributions.ordered(G), G, atol=1e-15)
    monotone = np.sort(np.clip(F, 0, 1), axis=1)
    np.testing.assert_array_equal(distributions.ordered(monotone), monotone)
    np.testing.assert_allclose(distributions.ordered(1 - F[:, ::-1]), 1 - G[:, ::-1], atol=1e-15)  # P(Z > z) alike


@given(arrays(np.float64, (3, 5), elements=st.floats(0, 1)), st.floats(0.01, 0.99))
@settings(max_examples=50, deadline=None)
def test_quantiles_invert_the_distribution(F, level):
    F, z = distributions.completed(np.sort(F, axis=1), np.arange(1.0, 6), 0.0, 6.0)
    q = distributions.quantiles(F, z, [level])[:, 0]
    for row, value in zip(F, q):
        before, after = distributions.at(row[None], z, value - 1e-9)[0], distributions.at(row[None], z, value)[0]
        assert after >= level - 1e-9 and before <= level + 1e-9


def test_means_are_integrals():
    F, z = distributions.completed(np.array([[0.25, 0.5, 0.75]]), [1.0, 2.0, 3.0], 0.0, 4.0)
    assert distributions.means(F, z)[0] == 2.0  # uniform on (0, 4)
    levels = (np.arange(4000) + 0.5) / 4000
    F, z = distributions.completed(np.array([[0.1, 0.1, 0.7]]), [1.0, 2.0, 3.0], -1.0, 9.0)
    assert distributions.means(F, z)[0] == pytest.approx(distributions.quantiles(F, z, levels).mean(), rel=1e-6)


# Conventions and refusals


def test_scikit_learn_checks_pass():
    results = check_estimator(IndicatorKriging(Exponential(), nugget=0.1), on_fail=None, on_skip=None)
    assert not {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert len(results) > 50
    kriging = IndicatorKriging(COV, [1.0], nugget=0.2)
    assert clone(kriging).get_params() == kriging.get_params()


@pytest.mark.parametrize("options, words", [
    ({"thresholds": [4.0, 3.0]}, "thresholds: expected ascending finite numbers"),
    ({"thresholds": []}, "thresholds: expected ascending"),
    ({"thresholds": [3.0, 1e9]}, r"thresholds: expected values from .* where there are observations, got 3 to 1e\+09"),
    ({"quantiles": [0.0, 0.5]}, "quantiles: expected levels between 0 and 1"),
    ({"cov": [COV, COV]}, "cov: expected one, or one for each of 9 thresholds, got 2"),
    ({"cov": []}, "cov: expected a covariance"),
    ({"cov": 3}, "cov: expected a covariance"),
    ({"nugget": [0.1]}, "nugget: expected one, or one for each of 9 thresholds, got 1"),
    ({"nugget": -1.0}, "nugget: expected a finite number"),
    ({"trend": "cubic"}, "trend: expected None"),
    ({"rtol": 5}, "rtol: expected a number below 1"),
    ({"neighbours": 0}, "neighbours: expected a positive integer"),
    ({"missing": "keep"}, 'missing: expected "raise" or "skip"'),
    ({"fit_variograms": True, "cov": on_sphere(Exponential(1.0, 100.0))}, "fit_variograms: expected a covariance in t"),
])  # fmt: skip
def test_wrong_arguments_are_refused(options, words):
    X, y, _ = problem(30)
    with pytest.raises(ValueError, match=words):
        IndicatorKriging(**{"cov": COV} | options).fit(X, y)


def test_wrong_requests_are_refused():
    X, y, T = problem(30)
    kriging = IndicatorKriging(COV + Nugget(0.1)).fit(X, y)
    with pytest.raises(ValueError, match="levels: expected numbers between 0 and 1"):
        kriging.predict_quantiles(T, [0.5, 1.0])
    with pytest.raises(ValueError, match="value: expected a finite number"):
        kriging.predict_exceedance(T, np.inf)
    with pytest.raises(ValueError, match="y: expected one value a site where nugget is 0"):
        IndicatorKriging(COV).fit(np.r_[X, X], np.r_[y, y + 1])
