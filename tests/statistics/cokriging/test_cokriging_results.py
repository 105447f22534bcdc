"""What practice asks of a fitted cokriging: cross-validation, files, profiles, estimates of many observations."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from stored import changed_settings
from test_cokriging import LINEAR, MATERN, NUGGETS, sample

from h2gpu.covariance import MultivariateMatern
from h2gpu.statistics import CoKriging, Kriging, refinement, systems
from h2gpu.statistics.cokriging.stacking import stacked, trend_of_variables
from h2gpu.statistics.cokriging.starts import with_nuggets
from h2gpu.statistics.likelihood import estimation
from h2gpu.statistics.likelihood.hierarchical_moments import hierarchical_moments
from h2gpu.statistics.likelihood.log_likelihood import Data
from h2gpu.statistics.likelihood.moments import dense_moments
from h2gpu.statistics.likelihood.parameters import Model
from h2gpu.statistics.trends import trend_of

MILD = MultivariateMatern((1.0, 4.0), 2.0, (0.5, 1.5), 0.4)

# Leave one out


@pytest.mark.parametrize("trend", [None, "constant"])
def test_leaving_one_out_is_cokriging_from_all_others(trend):
    X, Y, _ = sample(MATERN, 40)
    model = CoKriging(MATERN, NUGGETS, trend, mean=0.0 if trend else (5.0, -2.0))
    found = model.fit(X, Y).leave_one_out()
    np.testing.assert_array_equal(np.isnan(found.mean), np.isnan(Y))
    np.testing.assert_allclose(found.values, Y, rtol=1e-12)
    for row, i in [(0, 1), (3, 0), (11, 1), (25, 0)]:
        if np.isfinite(Y[row, i]):
            others = Y.copy()
            others[row, i] = np.nan
            mean, std = model.fit(X, others).predict(X[row : row + 1], return_std=True, observations=True)
            assert found.mean[row, i] == pytest.approx(mean[0, i], abs=1e-8)
            assert found.std[row, i] == pytest.approx(std[0, i], rel=1e-7)


def test_many_are_left_out_to_the_error_told(monkeypatch):
    X, Y, _ = sample(LINEAR, 250)
    exact = CoKriging(LINEAR, NUGGETS).fit(X, Y).leave_one_out()
    monkeypatch.setattr(systems, "DENSE", 0)
    found = CoKriging(LINEAR, NUGGETS).fit(X, Y).leave_one_out()
    relative = np.sqrt(np.nanmean((found.std / exact.std - 1) ** 2))
    assert 0 < found.std_error < 0.05 and relative < 2 * found.std_error
    np.testing.assert_allclose(found.mean, exact.mean, atol=0.1)


def test_intervals_are_those_of_the_standard_deviations():
    X, Y, _ = sample(MATERN, 40)
    model = CoKriging(MATERN, NUGGETS).fit(X, Y)
    mean, std = model.predict(X[:4] + 0.1, return_std=True, observations=True)
    found, low, high = model.predict(X[:4] + 0.1, interval=0.9, observations=True)
    np.testing.assert_array_equal(found, mean)
    np.testing.assert_allclose([(mean - low) / std, (high - mean) / std], 1.6448536269514722, rtol=1e-10)
    with pytest.raises(ValueError, match="interval: expected a level between 0 and 1"):
        model.predict(X, interval=1.0)


# Files


def test_a_file_predicts_as_what_was_saved(tmp_path, way):
    X, Y, _ = sample(LINEAR, 60)
    model = CoKriging(LINEAR, NUGGETS, "linear", fit_parameters=["nugget"]).fit(X, Y)
    model.save(tmp_path / "fields.h5")
    again = CoKriging.load(tmp_path / "fields.h5")
    new = 10 * np.random.default_rng(1).random((6, 2))
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    np.testing.assert_allclose(
        again.predict(new, return_std=True)[1], model.predict(new, return_std=True)[1], rtol=1e-6
    )
    np.testing.assert_allclose(again.trend_coefficients_, model.trend_coefficients_)
    assert again.cov_ == model.cov_ and again.parameters_ == model.parameters_ and again.residual_ == model.residual_
    assert again.parameter_intervals_ == model.parameter_intervals_ and again.converged_ == model.converged_
    given, kept = model.get_params(), again.get_params()
    assert kept.pop("cov") == given.pop("cov") and kept.pop("nugget") == list(given.pop("nugget")) and kept == given
    np.testing.assert_allclose(again.leave_one_out().mean, model.leave_one_out().mean, atol=1e-5)
    assert again.log_marginal_likelihood() == pytest.approx(model.log_marginal_likelihood(), abs=1e-3)
    with pytest.raises(ValueError, match=r"expected a file of Kriging\.save, got expected h2gpu-kriging"):
        Kriging.load(tmp_path / "fields.h5")


@pytest.mark.parametrize("change, words", [
    (lambda file, settings: settings.pop("nugget_"), "KeyError: 'nugget_'"),
    (lambda file, settings: settings.update(nugget_=[-1, 1]), "nugget: expected a finite number"),
    (lambda file, settings: settings["cov_"].update(name="Matern"), "covariance Matern: expected the keys"),
    (lambda file, settings: settings.update(cov_={"name": "Nugget", "variance": 1.0}), "covariance of 2 variables"),
    (lambda file, settings: settings.update(rtol=5), "rtol: expected a number below 1"),
    (lambda file, settings: file["Y"].write_direct(np.full((40, 2), np.inf)), "got NaN or infinity"),
    (lambda file, settings: file["X"].write_direct(np.full((40, 2), np.nan)), "got NaN or infinity"),
    (lambda file, settings: file["Y"].write_direct(np.full((40, 2), np.nan)), "NaN for all of column 0"),
    (lambda file, settings: file.pop("w"), "no dataset w"),
    (lambda file, settings: file.attrs.update(format="h2gpu-kriging"), "expected h2gpu-cokriging"),
], ids=range(10))  # fmt: skip
def test_nothing_in_a_file_is_trusted(tmp_path, change, words):
    X, Y, _ = sample(MATERN, 40)
    path = tmp_path / "fields.h5"
    CoKriging(MATERN, NUGGETS).fit(X, Y).save(path)
    changed_settings(path, change)
    with pytest.raises(ValueError, match=words):
        CoKriging.load(path)


def test_functions_are_no_part_of_a_file(tmp_path):
    X, Y, _ = sample(MATERN, 40)
    with pytest.raises(ValueError, match="save: expected trend to be a value that a file can hold"):
        CoKriging(MATERN, NUGGETS, lambda X: X[:, :1]).fit(X, Y).save(tmp_path / "fields.h5")


# Estimates


def test_profiles_of_correlations():
    X, Y, _ = sample(MILD, 100, missing=0.0)
    model = CoKriging(MILD, NUGGETS, fit_parameters=["partial"]).fit(X, Y)
    (name,) = (name for name in model.parameters_ if "partial" in name)
    profile = model.profile(name, [-0.5, 0.0, 0.5, 0.9])
    low, high = profile.interval()
    assert -1 <= low < model.parameters_[name] < high <= 1 and low > 0
    assert profile.log_likelihood.argmin() == 0 and profile.log_likelihood.max() <= profile.highest
    with pytest.raises(ValueError, match="values: expected finite numbers from −1 to 1"):
        model.profile(name, [1.5])


@pytest.mark.parametrize("cov", [LINEAR, MATERN], ids=["linear", "matern"])
def test_full_gradients_of_many_are_those_of_the_dense_likelihood(cov):
    X, Y, _ = sample(cov, 90)
    data = Data(stacked(X, Y).places(np.ones(2)), trend_of_variables(trend_of("constant", 2), 2))
    model = Model(with_nuggets(cov, np.array(NUGGETS)), 0.0)
    given = model, data.sites, data.places.noise, data.B, True
    exact = data.combined(model, dense_moments(*given))
    found = data.combined(model, hierarchical_moments(*given, probes=64))
    assert abs(found - exact) < 5 * found.standard_error + 1e-3
    np.testing.assert_array_less(abs(found.gradient - exact.gradient), 5 * found.gradient_error + 1e-3)


@pytest.mark.slow
def test_estimates_of_many_are_corrected_by_the_full_likelihood(monkeypatch):
    X, Y, _ = sample(MILD, 100, missing=0.1)
    kinds = ["variance", "length_scale"]
    best = CoKriging(MILD, NUGGETS, fit_parameters=kinds).fit(X, Y).log_marginal_likelihood()
    monkeypatch.setattr(estimation, "EXACT", 50)
    before = CoKriging(MILD, NUGGETS, fit_parameters=kinds, neighbours=3, refine=False).fit(X, Y)
    poor = before.log_marginal_likelihood()
    monkeypatch.setattr(systems, "DENSE", 100)
    monkeypatch.setattr(refinement, "WORTH", 0.0)
    monkeypatch.setattr(refinement, "STEPS", 1)
    found = CoKriging(MILD, NUGGETS, fit_parameters=kinds, neighbours=3).fit(X, Y)
    assert found.residual_ < 1e-4
    monkeypatch.undo()
    better = CoKriging(found.cov_, found.nugget_).fit(X, Y).log_marginal_likelihood()
    assert best > poor + 0.1 and better > poor + 0.5 * (best - poor)


def test_what_went_wrong_is_told_where_fit_was_called(monkeypatch):
    X, Y, _ = sample(MATERN, 60)
    monkeypatch.setattr(estimation, "MOST", 1)
    with pytest.warns(ConvergenceWarning, match="maximum likelihood") as told:
        model = CoKriging(MATERN, NUGGETS, fit_parameters=True).fit(X, Y)
    assert not model.converged_ and {one.filename for one in told} == {__file__}


def test_standard_deviations_that_are_less_accurate_are_told(monkeypatch):
    X, Y, _ = sample(MATERN, 150)
    monkeypatch.setattr(systems, "DENSE", 0)
    monkeypatch.setattr("h2gpu.statistics.variances.FEWEST", 2)
    monkeypatch.setattr("h2gpu.statistics.variances.MOST", 2)
    model = CoKriging(MATERN, NUGGETS, std_rtol=1e-4).fit(X, Y)
    with pytest.warns(UserWarning, match="standard deviations: .* too large at worst"):
        model.predict(10 * np.random.default_rng(1).random((100, 2)), return_std=True)
