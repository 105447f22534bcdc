"""Kriging in space and time: dense truth, parameters found again whatever the unit of time, both ways alike."""

import numpy as np
import pytest

from h2gpu.covariance import Exponential, Gneiting, Matern, SpaceTime
from h2gpu.statistics import Kriging, log_likelihood, simulate
from h2gpu.statistics.likelihood.parameters import Model

SHAPES = ("variance", "length_scale", "time_scale", "nugget", "time_exponent", "interaction")


def sample(cov, n=500, seed=0):
    """Sites in a square of side 10 and 500 units of time, and observations with a nugget of 0.1."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3)) * [10.0, 10.0, 500.0]
    return X, simulate(cov, X, 1, seed, nugget=0.1)[:, 0] + 5


def test_predictions_are_those_of_the_dense_equations(way):
    cov = Gneiting(Exponential(2.0, 3.0), 60.0, 0.7, 0.9)
    X, y = sample(cov, 250)
    mean, std = Kriging(cov, 0.1, trend=None, mean=5.0, std_rtol=0).fit(X[50:], y[50:]).predict(X[:50], True)
    K, k = cov(X[50:]) + 0.1 * np.eye(200), cov(X[:50], X[50:])
    np.testing.assert_allclose(mean, 5 + k @ np.linalg.solve(K, y[50:] - 5), atol=10 * way)
    variance = cov.variance_at_zero - np.einsum("ij,ji->i", k, np.linalg.solve(K, k.T))
    np.testing.assert_allclose(std**2, variance, atol=10 * way)


@pytest.mark.parametrize("truth, start, kinds", [
    (SpaceTime(Exponential(2.0, 3.0), Exponential(1.0, 100.0)), SpaceTime(Exponential(), Exponential()), True),
    (SpaceTime(Matern(2.0, (3.0, 1.0), 1.5), Matern(1.0, 60.0, 1.5)),
     SpaceTime(Matern(1.0, (1.0, 1.0)), Matern(1.0, 5e4)), True),
    (Gneiting(Exponential(2.0, 3.0), 60.0, 0.7, 0.8), Gneiting(Exponential()), SHAPES),
], ids=repr)  # fmt: skip
def test_the_truth_lies_within_the_errors_told(truth, start, kinds):
    X, y = sample(truth)
    kriging = Kriging(start, fit_parameters=kinds).fit(X, y)
    chosen = kriging._model().kinds
    assert kriging.log_marginal_likelihood() >= log_likelihood(truth, X, y, 0.1, "constant") - 1e-6
    assert abs(kriging.log_marginal_likelihood(gradient=True).gradient).max() < 0.05
    expected = {free.name: free.value for free in Model(truth, 0.1, chosen).free}
    assert expected.keys() == kriging.parameters_.keys()
    for name, error in kriging.parameter_errors_.items():  # a nugget found to be 0 has none
        assert abs(np.log(kriging.parameters_[name] / expected[name])) < 3.5 * error, name


def test_units_of_time_do_not_matter():
    X, y = sample(SpaceTime(Exponential(2.0, 3.0), Exponential(1.0, 100.0)), 300)
    days, seconds = (
        Kriging(SpaceTime(Exponential(), Exponential()), fit_parameters=True).fit(X * [1, 1, unit], y)
        for unit in (1.0, 86400.0)
    )
    assert days.log_marginal_likelihood() == pytest.approx(seconds.log_marginal_likelihood(), abs=0.02)
    ratio = seconds.parameters_["time.length_scale"] / days.parameters_["time.length_scale"]
    assert ratio == pytest.approx(86400.0, rel=0.05)


def test_the_variance_is_counted_once_and_time_can_stay():
    cov = SpaceTime(Exponential(2.0, 3.0), Exponential(1.0, 100.0))
    assert Model(cov, 0.1).names == ["space.variance", "space.length_scale", "time.length_scale", "nugget"]
    assert Model(cov, 0.1, ("variance", "length_scale")).names == ["space.variance", "space.length_scale"]
    assert Model(Gneiting(Matern()), 0.1).names == ["space.variance", "space.length_scale", "time_scale", "nugget"]
    model = Model(cov, 0.1)
    other = model.scaled(2.0, 3.0, 4.0)
    assert [free.value for free in other.free] == pytest.approx([4.0, 9.0, 400.0, 0.2])
    assert other.cov.time.variance == 1.0


def test_an_estimate_beyond_the_time_observed_is_told():
    X, y = sample(SpaceTime(Exponential(2.0, 3.0), Exponential(1.0, 1e5)), 120)
    with pytest.warns(match=r"time.length_scale .* exceeds the extent"):
        Kriging(SpaceTime(Exponential(), Exponential()), fit_parameters=True).fit(X, y)


def test_a_saved_model_predicts_the_same(tmp_path):
    cov = Gneiting(Exponential(2.0, 3.0), 60.0, 0.7, 0.9)
    X, y = sample(cov, 80)
    kriging = Kriging(cov, 0.1).fit(X, y)
    kriging.save(tmp_path / "model.h5")
    np.testing.assert_array_equal(Kriging.load(tmp_path / "model.h5").predict(X[:5]), kriging.predict(X[:5]))
