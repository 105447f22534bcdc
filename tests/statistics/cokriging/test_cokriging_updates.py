"""Further observations of a fitted cokriging: an update is a fit of all at the parameters in use."""

import numpy as np
import pytest
from test_cokriging import LINEAR, MATERN, NUGGETS, sample

from h2gpu.covariance import MultivariateMatern
from h2gpu.statistics import CoKriging


def same_results(one, other, new):
    for a, b in zip(one.predict(new, return_std=True), other.predict(new, return_std=True)):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    np.testing.assert_allclose(one.leave_one_out().std, other.leave_one_out().std, rtol=1e-8)
    np.testing.assert_allclose(one.trend_coefficients_, other.trend_coefficients_, rtol=1e-9)
    assert one.log_marginal_likelihood() == pytest.approx(other.log_marginal_likelihood(), rel=1e-9)


@pytest.mark.parametrize("cov", [LINEAR, MATERN], ids=["linear", "matern"])
@pytest.mark.parametrize("trend", [None, "constant", "linear"])
def test_an_update_is_a_fit_of_all(cov, trend):
    X, Y, _ = sample(cov, 90)
    Y[60:75, 1] = np.nan  # of the first variable alone
    Y[75:, 0] = np.nan
    mean = (0.0, 0.0) if trend else (5.0, -2.0)
    model = CoKriging(cov, NUGGETS, trend, mean=mean).fit(X[:60], Y[:60])
    assert model.update(X[60:75], Y[60:75]) is model
    model.update(X[75:], Y[75:])
    same_results(model, CoKriging(cov, NUGGETS, trend, mean=mean).fit(X, Y), X[:7] + 0.1)


def test_sites_of_before_get_what_they_lacked():
    X, Y, _ = sample(MATERN, 60, missing=0.0)
    old, new = Y.copy(), np.full_like(Y, np.nan)
    old[5:20, 1], new[5:20, 1] = np.nan, Y[5:20, 1]
    old[20:30, 0], new[20:30, 0] = np.nan, Y[20:30, 0]
    order = np.random.default_rng(0).permutation(np.r_[5:30, 50:60])
    new[50:] = Y[50:]
    given = old.copy()
    model = CoKriging(MATERN, NUGGETS, "linear").fit(X[:50], old[:50]).update(X[order], new[order])
    np.testing.assert_array_equal(old, given)  # the caller's own
    same = np.r_[:50, order[order >= 50]]  # sites of before come first
    np.testing.assert_array_equal(model._observed[0], X[same])
    same_results(model, CoKriging(MATERN, NUGGETS, "linear").fit(X[same], Y[same]), X[:7] + 0.1)


@pytest.mark.filterwarnings("ignore:maximum likelihood")
def test_estimates_stay():
    start = MultivariateMatern((1.0, 1.0), 2.0, (0.5, 1.5), 0.0)
    X, Y, _ = sample(MATERN, 80)
    model = CoKriging(start, fit_parameters=["variance", "nugget"]).fit(X[:60], Y[:60])
    names = "cov_", "parameters_", "parameter_errors_", "parameter_intervals_", "converged_", "estimation_"
    before, nuggets = [getattr(model, name) for name in names], model.nugget_.copy()
    model.update(X[60:], Y[60:])
    assert all(getattr(model, name) is value for name, value in zip(names, before))
    np.testing.assert_array_equal(model.nugget_, nuggets)
    same_results(model, CoKriging(model.cov_, nuggets).fit(X, Y), X[:7] + 0.1)


def test_a_loaded_model_is_updated_as_the_saved_one(tmp_path):
    X, Y, _ = sample(LINEAR, 60)
    model = CoKriging(LINEAR, NUGGETS, "linear").fit(X[:40], Y[:40])
    model.save(tmp_path / "fields.h5")
    again = CoKriging.load(tmp_path / "fields.h5").update(X[40:], Y[40:])
    np.testing.assert_array_equal(again.predict(X + 0.1), model.update(X[40:], Y[40:]).predict(X + 0.1))


@pytest.mark.parametrize("X, Y, words", [
    (np.ones((2, 3)), np.ones((2, 2)), "X: expected 2 coordinates as in fit, got 3"),
    (np.array([[11.0, 1.0]]), np.ones((1, 3)), r"Y: expected shape \(1, 2\), a column a variable"),
    (np.array([[11.0, 1.0]] * 2), np.ones((2, 2)), "X: expected different sites"),
    (np.array([[11.0, 1.0]]), np.full((1, 2), np.inf), "infinity"),
    (np.array([[11.0, 1.0], [0.5, 0.5]]), np.ones((2, 2)), "observed before at 1 sites, first in row 1; make them NaN"),
    (np.array([[0.5, 0.5]]), np.array([[np.nan, 1.0]]), "Y: expected values of variables that a site lacks"),
], ids=range(6))  # fmt: skip
def test_what_cannot_be_added_is_refused_and_changes_nothing(X, Y, words):
    sites, values, _ = sample(LINEAR, 40)
    sites[3], values[3] = 0.5, (np.nan, 2.0)
    model = CoKriging(LINEAR, NUGGETS).fit(sites, values)
    before, state = model.predict(sites), dict(vars(model))
    with pytest.raises(ValueError, match=words):
        model.update(X, Y)
    assert all(vars(model)[name] is value for name, value in state.items()) and len(vars(model)) == len(state)
    np.testing.assert_array_equal(model.predict(sites), before)


def test_a_failure_changes_nothing(monkeypatch):
    X, Y, _ = sample(LINEAR, 40)
    model = CoKriging(LINEAR, NUGGETS).fit(X[:30], Y[:30])
    state = dict(vars(model))

    def fails(*_):
        raise np.linalg.LinAlgError("not positive definite")

    monkeypatch.setattr("h2gpu.statistics.cokriging.estimator.solved_equations", fails)
    with pytest.raises(np.linalg.LinAlgError):
        model.update(X[30:], Y[30:])
    assert all(vars(model)[name] is value for name, value in state.items()) and len(vars(model)) == len(state)
