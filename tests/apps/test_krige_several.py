"""h2krige of several variables: what CoKriging gives, missing values, what is refused."""

import json

import h5py
import numpy as np
import pytest

from h2gpu.apps import h2krige
from h2gpu.covariance import Coregionalization, Exponential, MultivariateMatern
from h2gpu.statistics import CoKriging, Kriging, scores, simulate

KINDS = ["variance", "length_scale", "partial", "nugget"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """80 sites and 20 targets of two correlated variables, a fifth of the values missing."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    X = 10 * rng.random((100, 2))
    a, b = simulate(Exponential(1.0, 3.0), X, 2, 3).T
    Y = np.column_stack([a, 0.3 * a + b]) + 0.3 * rng.standard_normal((100, 2))
    Y[rng.random((100, 2)) < 0.2] = np.nan
    for name, part in (("train.h5", slice(0, 80)), ("test.h5", slice(80, 100))):
        with h5py.File(name, "w") as file:
            file["points"], file["soil/zinc"], file["soil/lead"] = X[part], Y[part, 0], Y[part, 1]
    return X, Y


def krige(*more, values="soil/zinc,soil/lead"):
    return h2krige.main(["train.h5", "--targets", "test.h5", "-o", "out.h5", "--values", values, "--quiet", *more])


@pytest.mark.parametrize("covariance", ["exponential", "matern"])
def test_predictions_are_those_of_cokriging(folder, covariance):
    X, Y = folder
    assert krige("--fit", "--covariance", covariance, "--trend", "linear", "--report", "told.json") == 0
    spread, length = np.nanvar(Y[:80], axis=0), float(np.ptp(X[:80], axis=0).max()) / 10
    cov = Coregionalization([np.diag(spread)], [Exponential(1.0, length)])
    if covariance == "matern":
        cov = MultivariateMatern(spread, length, (1.5, 1.5), 0.0)
    model = CoKriging(cov, 0.0, "linear", fit_parameters=KINDS).fit(X[:80], Y[:80])
    mean, std = model.predict(X[80:], return_std=True)
    new = np.sqrt(std**2 + model.nugget_)
    with h5py.File("out.h5") as file:
        for i, name in enumerate(("zinc", "lead")):
            np.testing.assert_allclose(file[f"mean_{name}"], mean[:, i], rtol=1e-6)
            np.testing.assert_allclose(file[f"std_{name}"], std[:, i], rtol=1e-6)
            np.testing.assert_allclose(file[f"std_observation_{name}"], new[:, i], rtol=1e-6)
            known = np.isfinite(Y[80:, i])
            expected = scores.summary(Y[80:, i][known], mean[known, i], new[known, i])
            assert file.attrs[f"crps_{name}"] == pytest.approx(expected["crps"], rel=1e-6)
        assert json.loads(file.attrs["nugget"]) == pytest.approx(model.nugget_.tolist(), rel=1e-6)
    with open("told.json", encoding="utf-8") as file:
        told = json.load(file)
    name = next(name for name in model.parameters_ if "partial" in name)
    found = told["estimated"]["parameters"][name]
    slope = 1 - model.parameters_[name] ** 2  # of tanh
    assert found["error"] == pytest.approx(slope * model.parameter_errors_[name], rel=1e-4)
    assert list(told["scores"]) == ["zinc", "lead"] and len(told["trend"]["coefficients"]) == 2


def test_missing_values_of_one_are_skipped_when_asked(folder, capsys):
    X, Y = folder
    given = "--variance", "1", "--length-scale", "3", "--nugget", "0.1"
    assert krige(*given, values="soil/zinc") == 2
    assert "soil/zinc: expected finite values" in capsys.readouterr().err
    assert krige(*given, "--missing", "skip", values="soil/zinc") == 0
    known = np.isfinite(Y[:80, 0])
    mean = Kriging(Exponential(1.0, 3.0), 0.1).fit(X[:80][known], Y[:80, 0][known]).predict(X[80:])
    with h5py.File("out.h5") as file:
        np.testing.assert_allclose(file["mean"], mean, rtol=1e-9)


@pytest.mark.parametrize("options, words", [
    ((), "--values: expected --fit with 2 variables"),
    (("--fit", "--sphere"), "--sphere: is for one of --values, got 2 of them"),
    (("--fit", "--nugget", "1"), "--nugget: is for one of --values"),
    (("--fit", "--truth", "a"), "--truth: expected 2 names as in --values, got 1"),
    (("--fit", "--covariance", "matern", "--length-scale", "1,2"), "--length-scale: expected one number for"),
], ids=range(5))  # fmt: skip
def test_what_is_of_one_variable_is_refused(folder, capsys, options, words):
    assert krige(*options) == 2
    assert words in capsys.readouterr().err


def test_names_are_different(folder, capsys):
    assert krige("--fit", values="soil/zinc,zinc") == 2
    assert "expected up to 20 different names" in capsys.readouterr().err
