"""Observations that are not Gaussian, beside GPBoost: scores against closed forms, one model with one answer."""

import numpy as np
import pytest

from h2gpu.apps.studies.likelihoods import compare, judge, observations, peers
from h2gpu.apps.studies.peers import gpboost_vecchia
from h2gpu.covariance import Exponential
from h2gpu.statistics import scores
from h2gpu.statistics.generalized.likelihoods import Binomial, Gamma, Poisson, StudentT


def test_scores_of_a_normal_distribution_are_the_closed_ones():
    """Student's t of many degrees of freedom is normal: y ~ N(m, v + scale²)."""
    rng = np.random.default_rng(0)
    m, v, y = rng.standard_normal((3, 40))
    v, likelihood = v**2, StudentT(0.7, 1e7)
    told, std = judge.summary(likelihood, m, v, np.ones(40), y), np.sqrt(v + 0.49)
    assert told["crps"] == pytest.approx(scores.crps(y, m, std), rel=1e-4)
    assert told["log score"] == pytest.approx(scores.log_score(y, m, std), rel=1e-5)
    assert told["rmse"] == pytest.approx(scores.rmse(y, m))
    assert told["coverage"] == scores.coverage(y, m, std)


@pytest.mark.parametrize("likelihood", [Poisson(), Gamma(2.0)])
def test_the_crps_is_half_the_mean_distance_of_two_less_than_of_one(likelihood):
    """CRPS = E |Y − y| − ½ E |Y − Y'|, by simulation."""
    rng, draws = np.random.default_rng(0), 400_000
    rate = np.exp(1 + 0.5 * rng.standard_normal((2, draws)))
    Y = rng.poisson(rate) if likelihood.discrete else rng.gamma(2.0, rate / 2)
    for y in (0.0 if likelihood.discrete else 0.3, 4.0, 25.0):
        known = abs(Y - y).mean() - 0.5 * abs(Y[0] - Y[1]).mean()
        found = judge.crps(likelihood, np.ones(1), np.full(1, 0.25), np.ones(1), np.array([y]))
        assert found[0] == pytest.approx(known, rel=0.02)


def test_the_crps_of_yes_or_no_is_brier_s_score():
    m, v, y = np.array([-1.0, 0.5]), np.array([0.3, 2.0]), np.array([0.0, 0.0])
    p = judge.predictive.moments(Binomial(), m, v, np.ones(2))[0]
    np.testing.assert_allclose(judge.crps(Binomial(), m, v, np.ones(2), y), p**2, rtol=1e-9)


def test_exposure_goes_with_its_counts():
    births, sites = np.arange(1.0, 41.0), np.arange(80.0).reshape(40, 2)
    cases = observations.counted(sites, 2 * births, births)
    assert sum(len(case.truth) for case in cases) == 40
    for case in cases:
        np.testing.assert_array_equal(case.y, 2 * case.size)
        np.testing.assert_array_equal(case.truth, 2 * case.target_size)


def test_at_the_same_parameters_gpboost_s_dense_computation_is_ours():
    pytest.importorskip("gpboost", reason="GPBoost is not installed")
    for name, (case,) in observations.simulated(80, 30).items():
        own = {"student-t": {"scale": 0.3}, "gamma": {"shape": 2.0}}.get(case.likelihood, {})
        model = peers.kriging(case.likelihood, Exponential(1.0, 0.1), own, trend=None, mean=1.0)
        model.fit(peers.features(case.likelihood, case.sites, case.size), case.y)
        mean, std = model.predict_latent(peers.features(case.likelihood, case.targets, case.target_size), True)
        given = peers.Fit(Exponential(1.0, 0.1), model.likelihood_, 1.0, mean, std**2)
        theirs = peers.gpboost(case, exact=True, given=given)
        assert (theirs.cov, theirs.likelihood, theirs.level) == (given.cov, given.likelihood, 1.0)
        near = 1e-2 if case.likelihood == "student-t" else 1e-6  # their mode of it is that much less exact
        np.testing.assert_allclose(theirs.mean, mean, atol=near, err_msg=name)
        np.testing.assert_allclose(np.sqrt(theirs.variance), std, rtol=1e-6, err_msg=name)


def test_a_row_a_package(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(gpboost_vecchia, "available", lambda: False)
    simulated = observations.simulated
    monkeypatch.setattr(observations, "simulated", lambda *sizes: {"one": simulated(*sizes)["simulated, Poisson"]})
    assert compare.main(["--sites", "60", "--targets", "20", "--output", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "GPBoost is not installed" in told and "one" in told
    assert (tmp_path / "study_likelihoods-cpu.csv").is_file()


def test_without_the_files_there_is_one_line(capsys):
    assert compare.main(["--data", "/nowhere"]) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1 and "expected a folder with meuse.rda" in told[0]
