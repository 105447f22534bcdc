"""Scores: integrals of their definitions, propriety, and refusals."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from h2gpu.statistics import scores

RNG = np.random.default_rng(7)
TRUTH, MEAN, STD = RNG.normal(size=9), RNG.normal(size=9), RNG.uniform(0.2, 3, 9)


def one(x):
    return np.array([x], float)


def test_errors_of_points():
    assert scores.rmse([1, 2, 5], [1, 4, 4]) == pytest.approx((5 / 3) ** 0.5)
    assert scores.mae([1, 2, 5], [1, 4, 4]) == pytest.approx(1.0)


@pytest.mark.parametrize("i", range(len(TRUTH)))
def test_crps_is_the_integral_of_its_definition(i):
    """∫ (F(x) − [y ≤ x])² dx."""
    y, mean, std = TRUTH[i], MEAN[i], STD[i]
    below = quad(lambda x: norm.cdf(x, mean, std) ** 2, -np.inf, y)[0]
    above = quad(lambda x: norm.sf(x, mean, std) ** 2, y, np.inf)[0]
    assert scores.crps(one(y), one(mean), one(std)) == pytest.approx(below + above, rel=1e-7)


def test_crps_of_certainty_is_the_absolute_error():
    assert scores.crps(TRUTH, MEAN, np.zeros(9)) == pytest.approx(scores.mae(TRUTH, MEAN))
    assert scores.crps(TRUTH, MEAN, np.full(9, 1e-9)) == pytest.approx(scores.mae(TRUTH, MEAN), abs=1e-8)


def test_known_values():
    """Gneiting & Raftery: at y = μ the CRPS is s (√2 − 1)/√π; the log score is scipy's density."""
    assert scores.crps(one(3), one(3), one(2)) == pytest.approx(2 * (2**0.5 - 1) / np.pi**0.5)
    assert scores.log_score(TRUTH, MEAN, STD) == pytest.approx(-norm.logpdf(TRUTH, MEAN, STD).mean())


def test_interval_score_and_coverage():
    """Width 2·1.96 s, 40 times the distance of a truth outside."""
    half = norm.ppf(0.975)
    assert scores.interval_score(one(0), one(0), one(1)) == pytest.approx(2 * half)
    assert scores.interval_score(one(-half - 1), one(0), one(1)) == pytest.approx(2 * half + 40)
    assert scores.interval_score(one(9), one(0), one(1), level=0.5) == pytest.approx(2 * norm.ppf(0.75) * -1 + 36)
    assert scores.coverage([-1.9, 0, 1.9, 2.0], np.zeros(4), np.ones(4)) == 0.75
    assert scores.coverage([-1.9, 0, 1.9, 2.0], np.zeros(4), np.ones(4), level=0.99) == 1


@pytest.mark.parametrize("score", [scores.crps, scores.interval_score, scores.log_score])
def test_the_true_distribution_scores_best(score):
    """Propriety: E over N(0, 1), by the quantiles of a fine grid."""
    truth = norm.ppf((np.arange(20_000) + 0.5) / 20_000)

    def expected(mean, std):
        return score(truth, np.full_like(truth, mean), np.full_like(truth, std))

    best = expected(0, 1)
    assert all(expected(mean, std) > best for mean, std in ((0.2, 1), (-0.2, 1), (0, 0.8), (0, 1.25)))


def test_coverage_of_calibrated_predictions_is_the_level():
    truth = norm.ppf((np.arange(10_000) + 0.5) / 10_000)
    for level in (0.5, 0.95):
        assert scores.coverage(truth, np.zeros(10_000), np.ones(10_000), level) == pytest.approx(level, abs=1e-4)


def test_summary_holds_what_the_functions_say():
    told = scores.summary(TRUTH, MEAN, STD)
    assert told == {
        "rmse": scores.rmse(TRUTH, MEAN),
        "mae": scores.mae(TRUTH, MEAN),
        "crps": scores.crps(TRUTH, MEAN, STD),
        "interval": scores.interval_score(TRUTH, MEAN, STD),
        "coverage": scores.coverage(TRUTH, MEAN, STD),
    }


@pytest.mark.parametrize(
    ("truth", "mean", "std", "words"),
    [
        ([1, 2], [1], [1, 1], r"mean: expected shape \(2,\)"),
        ([[1.0]], [1], [1], r"truth: expected shape \(n,\)"),
        ([], [], [], r"truth: expected shape"),
        ([1, np.nan], [1, 1], [1, 1], "truth: expected finite numbers"),
        ([1, 2], [1, 1], [1, -1], "std: expected numbers ≥ 0, got -1"),
    ],
)
def test_refusals(truth, mean, std, words):
    with pytest.raises(ValueError, match=words):
        scores.summary(np.array(truth, float), np.array(mean, float), np.array(std, float))


def test_refusals_of_levels_and_certainty():
    with pytest.raises(ValueError, match="level: expected"):
        scores.coverage(TRUTH, MEAN, STD, level=95)
    with pytest.raises(ValueError, match="expected positive numbers"):
        scores.log_score(TRUTH, MEAN, np.zeros(9))
