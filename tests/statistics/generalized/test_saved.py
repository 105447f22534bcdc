"""Files of a fitted GeneralizedKriging."""

import numpy as np
import pytest
from stored import changed_settings

from h2gpu.covariance import Exponential
from h2gpu.statistics import GeneralizedKriging, Kriging

pandas = pytest.importorskip("pandas")


def table(n=120):
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.random((n, 3)), columns=["x", "y", "people"])
    X["people"] = 10 + np.round(100 * X["people"])
    return X, rng.poisson(X["people"] * np.exp(np.sin(6 * X["x"])) / 10)


@pytest.mark.parametrize("likelihood", ["poisson", "gamma"])
def test_a_file_predicts_as_what_was_saved(tmp_path, likelihood):
    X, y = table()
    more = (
        {"exposure": "people"} if likelihood == "poisson" else {"fit_parameters": True, "trend": ["linear", "people"]}
    )
    model = GeneralizedKriging(Exponential(0.5, 0.4), likelihood, **more).fit(X, y + (likelihood == "gamma"))
    model.save(tmp_path / "counts.h5")
    again = GeneralizedKriging.load(tmp_path / "counts.h5")
    for found, kept in zip(again.predict(X[:9], return_std=True), model.predict(X[:9], return_std=True)):
        np.testing.assert_allclose(found, kept, rtol=1e-8)
    assert again.parameters_ == model.parameters_ and again.parameter_intervals_ == model.parameter_intervals_
    assert again.cov_ == model.cov_ and again.likelihood_ == model.likelihood_
    assert again.log_marginal_likelihood() == pytest.approx(model.log_marginal_likelihood(), rel=1e-10)
    given, kept = model.get_params(), again.get_params()
    assert kept == given
    with pytest.raises(ValueError, match=r"expected a file of Kriging\.save"):
        Kriging.load(tmp_path / "counts.h5")


@pytest.mark.parametrize("change, words", [
    (lambda file, settings: settings.pop("cov_"), "KeyError: 'cov_'"),
    (lambda file, settings: settings.update(likelihood="normal"), "likelihood: expected one of"),
    (lambda file, settings: settings.update(likelihood_={"rtol": 7}), "rtol: expected a number below 1"),
    (lambda file, settings: settings.update(parameters_=3), "TypeError"),
    (lambda file, settings: file["y"].write_direct(np.full(120, -1.0)), "y: expected whole numbers"),
    (lambda file, settings: file["mode"].write_direct(np.full(120, np.nan)), "mode: expected finite numbers"),
    (lambda file, settings: (file.pop("mode"), file.create_dataset("mode", data=np.zeros(3))),
     "mode: expected 120 numbers, one a place, got 3"),
    (lambda file, settings: file.pop("X"), "no dataset X"),
], ids=range(8))  # fmt: skip
def test_nothing_in_a_file_is_trusted(tmp_path, change, words):
    X, y = table()
    path = tmp_path / "counts.h5"
    GeneralizedKriging(Exponential(0.5, 0.4), "poisson", exposure="people").fit(X, y).save(path)
    changed_settings(path, change)
    with pytest.raises(ValueError, match=words):
        GeneralizedKriging.load(path)
