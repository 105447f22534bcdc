"""The studies of predictions: on small files like the published ones, with the truth they were simulated from."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
import small_fields

from h2gpu.apps.benchmarks.report import tables
from h2gpu.apps.studies import heaton as study_heaton
from h2gpu.apps.studies import kaust as study_kaust
from h2gpu.apps.studies import prediction_study, published
from h2gpu.apps.studies.peers import gpboost_vecchia
from h2gpu.covariance import Exponential, Matern, Nugget, on_sphere
from h2gpu.statistics import Kriging, log_likelihood

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def without_gpboost(monkeypatch):
    """Others' packages are tested by themselves."""
    monkeypatch.setattr(gpboost_vecchia, "available", lambda: False)


def test_the_table_of_heaton_s_fields(tmp_path, capsys):
    source = small_fields.heaton(tmp_path / "h.h5")
    arguments = ["--file", str(source), "--output", str(tmp_path / "out"), "--parameters", "given"]
    study_heaton.main(arguments)
    told, rows = tables.read(tmp_path / "out" / "study_heaton-given-cpu.csv")
    assert [row["method"] for row in rows] == ["h2gpu", "local 60"]  # the satellite's field has no parameters to give
    assert any(line.startswith("commit: ") for line in told)
    best, local = rows
    assert best["field"] == "simulated" and best["n"] == "180" and best["targets"] == "45"
    assert float(best["rmse"]) == pytest.approx(float(local["rmse"]), rel=0.1)
    assert float(best["coverage"]) > 0.8 and float(best["nugget"]) == 0.05
    assert (tmp_path / "out" / "study_heaton-simulated-given.png").stat().st_size > 10_000
    assert "coverage" in capsys.readouterr().out


def test_the_satellite_s_degrees_are_those_of_a_sphere(tmp_path, capsys):
    source = small_fields.heaton(tmp_path / "h.h5")
    arguments = ["--file", str(source), "--output", str(tmp_path), "--parameters", "estimated"]
    assert study_heaton.main(arguments) == 0
    _, rows = tables.read(tmp_path / "study_heaton-estimated-cpu.csv")
    assert [row["surface"] for row in rows] == ["plane"] * 2 + ["sphere"] * 2
    assert float(rows[2]["length scale"]) > 20 > float(rows[0]["length scale"])  # kilometres and degrees
    assert float(rows[2]["rmse"]) == pytest.approx(float(rows[3]["rmse"]), rel=0.1)
    field = published.heaton(source)["satellite"]
    assert study_heaton.start(field, "plane") == study_heaton.start(published.heaton(source)["simulated"])


def test_given_parameters_are_simple_kriging_with_the_known_mean(tmp_path):
    field = published.heaton(small_fields.heaton(tmp_path / "h.h5"))["simulated"]
    found = prediction_study.kriging(field, field.covariance, estimate=False)
    cov, K = Exponential(16.40771, 4 / 3), field.covariance(field.sites)
    weights = np.linalg.solve(K, cov(field.sites, field.targets))
    np.testing.assert_allclose(found.mean, field.mean + weights.T @ (field.values - field.mean), rtol=1e-8)
    variance = 16.40771 + 0.05 - np.einsum("ij,ij->j", weights, cov(field.sites, field.targets))
    np.testing.assert_allclose(found.std**2, variance, rtol=1e-6)
    assert (found.cov, found.nugget, found.trend.tolist()) == (cov, 0.05, [small_fields.MEAN])


def test_parameters_are_estimated_from_the_observations_alone(tmp_path, capsys):
    source = small_fields.kaust(tmp_path / "k.h5")
    arguments = ["--file", str(source), "--output", str(tmp_path), "--parameters", "estimated", "--fields", "rough"]
    study_kaust.main(arguments)
    _, (best, local) = tables.read(tmp_path / "study_kaust-estimated-cpu.csv")
    assert best["method"] == "h2gpu" and best["smoothness"] == local["smoothness"] == "0.6"
    assert (best["variance"], best["nugget"]) == (local["variance"], local["nugget"])  # the same parameters
    field = published.kaust(source)["rough"]
    truth, variance, length, nugget = field.truth, *(float(best[key]) for key in ("variance", "length scale", "nugget"))
    highest = log_likelihood(Matern(variance, length, 0.6), field.sites, field.values, nugget, "constant")
    assert float(best["log-likelihood"]) == pytest.approx(highest, abs=0.01) and not local["log-likelihood"]
    assert highest > log_likelihood(Matern(2 * variance, length, 0.6), field.sites, field.values, nugget, "constant")
    assert 0.05 < float(best["nugget"]) < 0.6 and float(best["rmse"]) < truth.std()
    assert "by the truth" in capsys.readouterr().out


def test_a_stopped_study_keeps_the_rows_it_measured_and_fits_nothing_else(tmp_path, monkeypatch):
    source, asked, fitted = small_fields.kaust(tmp_path / "k.h5"), [], prediction_study.kriging

    def kriging(field, cov, estimate, device, solver="auto"):
        asked.append(solver)
        if solver == "iterative":
            raise KeyboardInterrupt
        return fitted(field, cov, estimate, device, solver)

    monkeypatch.setattr(prediction_study, "kriging", kriging)
    options = ["--parameters", "estimated", "--fields", "rough", "--methods", "direct,iterative"]
    with contextlib.suppress(KeyboardInterrupt, SystemExit):
        study_kaust.main(["--file", str(source), "--output", str(tmp_path), *options])
    _, rows = tables.read(tmp_path / "study_kaust-estimated-cpu.csv")
    assert [row["method"] for row in rows] == ["direct"] and asked == ["direct", "iterative"]
    assert (tmp_path / "study_kaust-rough-estimated.png").is_file()  # of the first method


def test_a_linear_trend_is_taken_away_and_put_back(tmp_path):
    field = published.heaton(small_fields.heaton(tmp_path / "h.h5"))["satellite"]
    field = replace(field, trend="linear")
    tilted = replace(field, values=field.values + 9 * field.sites[:, 0], truth=field.truth + 9 * field.targets[:, 0])
    start = Exponential(1.0, 1.0) + Nugget(0.1)
    plain, sloped = (prediction_study.kriging(f, start, estimate=True) for f in (field, tilted))
    assert sloped.trend[1] - plain.trend[1] == pytest.approx(9, rel=1e-3)
    np.testing.assert_allclose(sloped.mean - 9 * field.targets[:, 0], plain.mean, atol=1e-2)
    near = prediction_study.near_sites(tilted, sloped)
    np.testing.assert_allclose(near.mean, sloped.mean, atol=0.5)


def test_the_microergodic_parameter_is_compared_with_the_truth(tmp_path):
    fields = published.kaust(small_fields.kaust(tmp_path / "k.h5"))
    cov = fields["smooth"].covariance
    row = {"field": "smooth", "method": "h2gpu", "parameters": "estimated"}
    scaled = {"variance": 8 * cov.variance, "length scale": 2 * cov.length_scale}  # 8 · 2^(−2·1.5) = 1
    rows = [row | scaled, row | scaled | {"method": "local 60"}, row | scaled | {"parameters": "given"}]
    (found,) = study_kaust.identified(rows, fields)
    assert found["by the truth"] == pytest.approx(1)
    assert study_kaust.start(fields["smooth"]) == Matern(1.0, 0.1, 1.5)
    assert study_kaust.start(fields["rough"]) == Matern(1.0, 0.1, 0.6) + Nugget(0.1)


def test_what_is_not_there(tmp_path, capsys):
    heaton = ["--file", str(small_fields.heaton(tmp_path / "h.h5")), "--output", str(tmp_path)]
    kaust = ["--file", str(small_fields.kaust(tmp_path / "k.h5"))]
    for study, arguments, words in (
        (study_heaton, ["--file", str(tmp_path / "absent.h5")], "absent.h5: no such file"),
        (study_heaton, [*heaton, "--methods", "nothing"], "--methods: expected some of h2gpu, local 60, "),
        (study_kaust, [*kaust, "--fields", "medium"], "--fields: expected some of rough, smooth, got medium"),
    ):
        assert study.main(arguments) == 2
        error = capsys.readouterr().err
        assert words in error and error.count("\n") == 1


def test_gpboost_s_predictions_from_all_sites_are_ours(tmp_path):
    pytest.importorskip("gpboost", reason="gpboost is not installed (the extra studies)")
    field = published.kaust(small_fields.kaust(tmp_path / "k.h5", sites=25, targets=7))["rough"]
    cov, nugget = prediction_study.split(field.covariance)
    ours = Kriging(cov, nugget, trend=None).fit(field.sites, field.values)
    mean, std = ours.predict(field.targets, return_std=True, observations=True)
    theirs = gpboost_vecchia.kriging(field, cov, nugget, estimate=False)
    np.testing.assert_allclose(theirs[0], mean, rtol=1e-6)
    np.testing.assert_allclose(theirs[1], std, rtol=1e-6)


def test_gpboost_takes_the_chord_of_a_sphere(tmp_path):
    pytest.importorskip("gpboost", reason="gpboost is not installed (the extra studies)")
    field = published.heaton(small_fields.heaton(tmp_path / "h.h5", side=5, held=7))["satellite"]
    cov, field = on_sphere(Exponential(16.0, 120.0), distance="chordal"), replace(field, mean=small_fields.MEAN)
    ours = Kriging(cov, 0.05, trend=None, mean=field.mean).fit(field.sites, field.values)
    mean, std = ours.predict(field.targets, return_std=True, observations=True)
    theirs = gpboost_vecchia.kriging(field, cov, 0.05, estimate=False)
    np.testing.assert_allclose(theirs[0], mean, rtol=1e-6)
    np.testing.assert_allclose(theirs[1], std, rtol=1e-6)
    found = gpboost_vecchia.kriging(field, cov, 0.05, estimate=True)
    assert found[2].radius == cov.radius and found[2].distance == "chordal"


def test_gpboost_estimates_trend_and_parameters(tmp_path):
    pytest.importorskip("gpboost", reason="gpboost is not installed (the extra studies)")
    field = published.heaton(small_fields.heaton(tmp_path / "h.h5"))["satellite"]
    field = replace(field, trend="linear")
    tilted = replace(field, values=field.values + 9 * field.sites[:, 0], truth=field.truth + 9 * field.targets[:, 0])
    plain, sloped = (prediction_study.peer(f, Exponential() + Nugget(0.1), estimate=True) for f in (field, tilted))
    assert sloped.trend[1] - plain.trend[1] == pytest.approx(9, rel=0.01)
    np.testing.assert_allclose(sloped.mean - 9 * field.targets[:, 0], plain.mean, atol=0.1)
    assert plain.seconds[0] > 0 and 0 < plain.cov.variance < 100
