"""Scores of predicted distributions: closed forms, the kernel form of the CRPS, sharp likelihoods."""

import numpy as np
import pytest
from scipy import special, stats

from h2gpu.covariance import Exponential
from h2gpu.statistics import GeneralizedKriging
from h2gpu.statistics.generalized import predictive
from h2gpu.statistics.generalized.likelihoods import Binomial, Gamma, Poisson, StudentT
from h2gpu.statistics.generalized.scoring import crps

ONES, CERTAIN = np.ones(5), np.zeros(5)


def test_of_a_gamma_distribution_it_is_the_closed_form():
    """Scheuerer & Möller (2015), equation 3."""
    a, mu, y = 2.5, 3.0, np.array([0.1, 1.0, 3.0, 10.0, 40.0])
    F = lambda shape: stats.gamma.cdf(y, shape, scale=mu / a)  # noqa: E731
    expected = y * (2 * F(a) - 1) - mu * (2 * F(a + 1) - 1) - mu / a / special.beta(0.5, a)
    np.testing.assert_allclose(crps(Gamma(a), y, np.log(mu) * ONES, CERTAIN, ONES), expected, rtol=1e-6)


def test_of_student_s_t_it_is_the_closed_form():
    """Jordan, Krüger & Lerch (2019), appendix A."""
    df, y = 4.0, np.array([-200.0, -1.0, 1.0, 2.5, 30.0])
    z = (y - 1) / 2
    spread = 2 * np.sqrt(df) / (df - 1) * special.beta(0.5, df - 0.5) / special.beta(0.5, df / 2) ** 2
    expected = 2 * (z * (2 * stats.t.cdf(z, df) - 1) + 2 * stats.t.pdf(z, df) * (df + z**2) / (df - 1) - spread)
    np.testing.assert_allclose(crps(StudentT(2.0, df), y, ONES, CERTAIN, ONES), expected, rtol=1e-6)


def test_of_a_certain_count_it_is_the_sum():
    y, k = np.array([0.0, 3.0, 7.0, 20.0, 500.0]), np.arange(1000)
    for likelihood, law in ((Poisson(), stats.poisson(6.0)), (Binomial(), stats.binom(6, 0.5))):
        eta, size = (np.log(6.0) * ONES, ONES) if isinstance(likelihood, Poisson) else (CERTAIN, 6 * ONES)
        expected = ((law.cdf(k) - (y[:, None] <= k)) ** 2).sum(axis=1)
        np.testing.assert_allclose(crps(likelihood, y, eta, CERTAIN, size), expected, rtol=1e-6)


@pytest.mark.parametrize("likelihood, m, v, size", [
    (Poisson(), 1.0, 0.5, 2.0), (Poisson(), 6.0, 2.0, 1.0), (Poisson(), 0.0, 9.0, 1.0), (Poisson(), 12.0, 0.01, 1.0),
    (Binomial(), 0.3, 1.0, 5000.0), (Gamma(200.0), 1.0, 1.0, 1.0), (StudentT(0.1, 3.0), 1.0, 4.0, 1.0),
])  # fmt: skip
def test_it_is_the_distance_from_the_sample_less_half_of_its_spread(likelihood, m, v, size):
    """CRPS = E|Y − y| − ½ E|Y − Y'|."""
    eta, weights = m + np.sqrt(v) * stats.norm.ppf((np.arange(4000) + 0.5) / 4000), np.full(4000, 1 / 4000)
    rng, scale = np.random.default_rng(0), getattr(likelihood, "scale", 1.0)
    u = rng.permutation(4000)
    p = (u + 0.5) / 4000  # stratified in both, paired at random
    draw = {
        Poisson: lambda: stats.poisson.ppf(p, size * np.exp(eta)),
        Binomial: lambda: stats.binom.ppf(p, int(size), special.expit(eta)),
        Gamma: lambda: stats.gamma.ppf(p, 200.0, scale=np.exp(eta) / 200),
        StudentT: lambda: eta + scale * stats.t.ppf(p, 3.0),
    }
    Y = np.sort(draw[type(likelihood)]())
    y = np.quantile(Y, [0.01, 0.3, 0.5, 0.9, 0.999], method="nearest")
    half = ((2 * np.arange(1, 4001) - 4001) * Y).sum() / 4000**2
    expected = (abs(Y[:, None] - y) * weights[:, None]).sum(axis=0) - half
    found = crps(likelihood, y, m * ONES, v * ONES, size * ONES)
    np.testing.assert_allclose(found, expected, rtol=0.05)


def test_probabilities_are_right_where_the_likelihood_is_sharp():
    """Counts of millions and errors of a thousandth: P(y ≤ t) is that of the predictor alone."""
    z = np.array([-2.0, -0.03, 0.0, 0.07, 1.5])
    for likelihood, t in ((Poisson(), np.exp(16 + z)), (Gamma(1e7), np.exp(16 + z)), (StudentT(1e-4, 4.0), 16 + z)):
        found = predictive.cdf(likelihood, t, 16 * ONES, ONES, ONES)
        np.testing.assert_allclose(found, stats.norm.cdf(z), atol=3e-4)


def test_a_smooth_distribution_function_meets_that_of_counts():
    k = np.arange(0.0, 9.0)
    for likelihood, size in ((Poisson(), 1.0), (Binomial(), 8.0)):
        np.testing.assert_allclose(likelihood.smooth_cdf(k, 0.4, size), likelihood.cdf(k, 0.4, size), rtol=1e-12)


def test_an_estimator_tells_all_scores():
    rng = np.random.default_rng(0)
    X = rng.random((250, 2))
    y = rng.poisson(np.exp(1 + np.sin(6 * X[:, 0])))
    good = GeneralizedKriging(Exponential(1.0, 0.5), "poisson").fit(X[:200], y[:200])
    told = good.summary(X[200:], y[200:], level=0.8)
    assert list(told) == ["rmse", "mae", "crps", "interval", "coverage", "log"]
    assert told["log"] == pytest.approx(-good.log_scores(X[200:], y[200:]).mean(), rel=1e-12)
    assert told["crps"] == pytest.approx(good.crps_scores(X[200:], y[200:]).mean(), rel=1e-12)
    mean, low, high = good.predict(X[200:], interval=0.8, observations=True)
    assert told["coverage"] == np.mean((low <= y[200:]) & (y[200:] <= high)) >= 0.8 - 0.15
    assert told["rmse"] == pytest.approx(np.sqrt(np.mean((mean - y[200:]) ** 2)))
    poor = GeneralizedKriging(Exponential(1e-4, 0.5), "poisson").fit(X[:200], y[:200]).summary(X[200:], y[200:], 0.8)
    assert all(told[name] < poor[name] for name in ("rmse", "crps", "log", "interval"))
    with pytest.raises(ValueError, match="level: expected a number between 0 and 1"):
        good.summary(X, y, level=1.0)
