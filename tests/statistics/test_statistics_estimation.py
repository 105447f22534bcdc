"""Maximum likelihood: the gradient vanishes, the truth lies within the errors told, the start is found in the data."""

from dataclasses import replace

import numpy as np
import pytest
from kriging_problems import sample
from reference import points_of
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from h2gpu.covariance import (
    Exponential,
    Expression,
    Gaussian,
    Matern,
    Nugget,
    PoweredExponential,
    RationalQuadratic,
    from_distance,
    on_sphere,
)
from h2gpu.statistics import Kriging, log_likelihood, simulate
from h2gpu.statistics.likelihood import estimation
from h2gpu.statistics.likelihood.log_likelihood import Data, LogLikelihood
from h2gpu.statistics.likelihood.parameters import USUAL, Model
from h2gpu.statistics.likelihood.starts import starts_from_variogram
from h2gpu.statistics.likelihood.variogram import empirical_variogram
from h2gpu.statistics.places import places_of
from h2gpu.statistics.trends import trend_of

SMOOTH = ("variance", "length_scale", "nugget", "smoothness")


@pytest.mark.parametrize("cov, start, kinds", [
    (Exponential(2.0, 0.2), Exponential(1.0, 10.0), True),
    (Matern(2.0, 0.1, 1.5), Matern(50.0, 1.0, 1.5), True),
    (Exponential(2.0, (0.3, 0.1)), Exponential(1.0, (1.0, 1.0)), True),
    (Matern(2.0, 0.2, 1.5), Matern(1.0, 1.0, 0.7), SMOOTH),
], ids=repr)  # fmt: skip
def test_the_likelihood_is_at_its_maximum_and_the_truth_within_the_errors(cov, start, kinds):
    X, y = sample(cov)
    kriging = Kriging(start, fit_parameters=kinds).fit(X, y)
    chosen = USUAL if kinds is True else kinds
    best = kriging.log_marginal_likelihood(gradient=True)
    assert abs(best.gradient).max() < 0.05 and best.names == list(kriging.parameters_)
    assert best >= log_likelihood(cov, X, y, 0.1, "constant") - 1e-6
    truth = {free.name: free.value for free in Model(cov, 0.1, chosen).free}
    for name, value in kriging.parameters_.items():
        error = kriging.parameter_errors_[name]
        assert abs(np.log(value / truth[name])) < 3.5 * error and 0.01 < error < 1.5, name
    assert kriging.cov_ != start and kriging.cov == start and kriging.nugget == 0


def test_it_is_the_optimum_that_a_general_optimizer_finds():
    X, y = sample(Exponential(2.0, 0.2), 150)
    kriging = Kriging(Exponential(), fit_parameters=True).fit(X, y)
    model = Model(kriging.cov_, kriging.nugget_)

    def negative(theta):
        at = model.at(theta)
        value = log_likelihood(at.cov, X, y, at.nugget, "constant", gradient=True)
        return -value, -value.gradient

    found = minimize(negative, np.log([1.0, 0.5, 0.5]), jac=True, method="L-BFGS-B", options={"ftol": 1e-13})
    assert kriging.log_marginal_likelihood() == pytest.approx(-found.fun, abs=1e-4)
    np.testing.assert_allclose(model.theta, found.x, atol=0.02)


def test_restricted_estimates_allow_for_the_trend():
    """The variance is larger, by about n/(n − p) for independent data."""
    X, y = sample(Exponential(1.0, 0.05), 60, 0.01)
    trend = lambda X: X[:, :1] ** np.arange(6)  # noqa: E731
    usual, restricted = (
        Kriging(Exponential(1.0, 0.05), 0.01, trend, fit_parameters=["variance"], restricted=r).fit(X, y)
        for r in (False, True)
    )
    assert restricted.cov_.variance > 1.05 * usual.cov_.variance
    assert restricted.nugget_ == 0.01 and restricted.cov_.length_scale == 0.05
    assert abs(restricted.log_marginal_likelihood(gradient=True).gradient).max() < 0.02


def test_what_is_not_asked_for_stays():
    X, y = sample(Matern(2.0, 0.2, 1.5))
    kriging = Kriging(Matern(2.0, 0.2, 1.5), 0.1, fit_parameters=["length_scale"]).fit(X, y)
    assert kriging.cov_.variance == 2.0 and kriging.cov_.smoothness == 1.5 and kriging.nugget_ == 0.1
    assert list(kriging.parameters_) == ["length_scale"]
    assert abs(np.log(kriging.cov_.length_scale / 0.2)) < 0.3


def test_nuggets_within_the_covariance_are_estimated_there():
    X, y = sample(Exponential(2.0, 0.2))
    inside = Kriging(Exponential() + Nugget(1.0), fit_parameters=True).fit(X, y)
    outside = Kriging(Exponential(), fit_parameters=True).fit(X, y)
    assert inside.nugget_ == 0 and inside.cov_.nugget == pytest.approx(outside.nugget_, rel=0.02)


def test_no_nugget_is_found_where_there_is_none():
    X, y = sample(Matern(2.0, 0.2, 1.5), nugget=0.0)
    kriging = Kriging(Matern(1.0, 1.0, 1.5), fit_parameters=True).fit(X, y)
    assert kriging.nugget_ == 0.0 and kriging.parameters_["nugget"] == 0.0
    assert kriging.parameter_errors_.keys() == {"variance", "length_scale"}
    within = Kriging(Matern(1.0, 1.0, 1.5) + Nugget(0.1), fit_parameters=True).fit(X, y)
    assert within.parameters_["terms[1].nugget"] == 0.0
    np.testing.assert_allclose(kriging.predict(X), y, atol=1e-6)


def test_repeated_sites_tell_the_measurement_error():
    X, y = sample(Exponential(2.0, 0.2), 100, 0.0)
    rng = np.random.default_rng(0)
    X, y = np.repeat(X, 5, axis=0), np.repeat(y, 5) + 0.3 * rng.standard_normal(500)
    kriging = Kriging(Exponential() + Nugget(0.2), 0.05, fit_parameters=["variance", "length_scale"]).fit(X, y)
    assert kriging.nugget_ == 0.05
    kriging = Kriging(Exponential(), fit_parameters=True).fit(X, y)
    assert kriging.nugget_ == pytest.approx(0.09, rel=0.2) and kriging.parameter_errors_["nugget"] < 0.12


def test_sums_and_the_sphere_are_estimated():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 40, 300), rng.uniform(30, 60, 300)])
    cov = on_sphere(Exponential(2.0, 500.0))
    y = simulate(cov, X, 1, 0, nugget=0.1)[:, 0]
    kriging = Kriging(on_sphere(Exponential(1.0, 10.0)), fit_parameters=True).fit(X, y)
    assert 150 < kriging.cov_.covariance.length_scale < 2000
    kriging = Kriging(Exponential(1.0, 10.0) + Gaussian(1.0, 1.0), fit_parameters=True).fit(X, y)
    assert len(kriging.parameters_) == 5


def test_numbers_of_an_expression_are_estimated():
    X, y = sample(Exponential(2.0, 0.2), 100)
    cov = Expression("sill * exp(-pow(r / reach, power))", sill=1.0, reach=7.0, power=1.0)
    assert [cov.role(name) for name in ("sill", "reach", "power")] == ["variance", "length_scale", "number"]
    kriging = Kriging(cov, fit_parameters=["sill", "length_scale", "nugget"]).fit(X, y)
    expected = Kriging(Exponential(), fit_parameters=True).fit(X, y)
    assert list(kriging.parameters_) == ["reach", "sill", "nugget"]
    assert kriging.cov_.with_numbers(power=0.5).numbers == (("power", 0.5), *kriging.cov_.numbers[1:])
    best = kriging.log_marginal_likelihood()
    assert best == pytest.approx(expected.log_marginal_likelihood(), abs=1e-4)
    assert kriging.parameters_["reach"] == pytest.approx(expected.cov_.length_scale, rel=0.02)
    every = Kriging(cov, fit_parameters=True).fit(X, y)
    assert set(every.parameters_) == {"sill", "reach", "power", "nugget"}
    assert every.log_marginal_likelihood(gradient=True) >= best
    coordinates = Expression("v * exp(-fabs(x[0] - y[0]) / a - fabs(x[1] - y[1]) / b)", v=1.0, a=1.0, b=1.0)
    assert [coordinates.role(name) for name in "vab"] == ["variance", "number", "number"]


@pytest.mark.parametrize("axes", [0.6, -1.0])
def test_rotation_is_estimated(axes):
    cov = Exponential(2.0, (0.6, 0.1), rotation=axes)
    X, y = sample(cov, 250)
    start = Exponential(1.0, (1.0, 1.0), rotation=0.0)
    kriging = Kriging(start, fit_parameters=True).fit(X, y)
    assert list(kriging.parameters_) == ["variance", "length_scale[0]", "length_scale[1]", "rotation", "nugget"]
    likelihood = kriging.log_marginal_likelihood(gradient=True)
    assert abs(likelihood.gradient).max() < 0.2 and likelihood > log_likelihood(cov, X, y, 0.1, "constant")
    straight = Kriging(Exponential(1.0, (1.0, 1.0)), fit_parameters=True).fit(X, y)
    assert likelihood > straight.log_marginal_likelihood() + 10
    first, second = kriging.cov_.length_scale
    off = kriging.cov_.rotation - axes + (np.pi / 2 if first < second else 0)
    assert abs((off + np.pi / 2) % np.pi - np.pi / 2) < 4 * kriging.parameter_errors_["rotation"] < 0.5


@pytest.mark.parametrize("cov, kinds", [
    (PoweredExponential(2.0, 0.2, 1.4), [*USUAL[:2], "nugget", "exponent"]),
    (RationalQuadratic(2.0, 0.2, 0.8), [*USUAL[:2], "nugget", "alpha"]),
], ids=repr)  # fmt: skip
def test_shapes_are_estimated_on_request(cov, kinds):
    X, y = sample(cov, 200, 0.05)
    kinds = [kind for kind in kinds if kind != "rotation"]
    kriging = Kriging(replace(cov, length_scale=1.0), fit_parameters=kinds).fit(X, y)
    assert set(kriging.parameters_) == set(kinds)
    assert kriging.log_marginal_likelihood() > log_likelihood(cov, X, y, 0.05, "constant")
    assert Kriging(PoweredExponential(1.0, 0.3, 2.0), 0.1, fit_parameters=["exponent"]).fit(X, y).cov_.exponent < 1.99


def test_a_trend_left_out_is_told():
    X = points_of("uniform", 150, 2)
    y = 30 * X[:, 0] + simulate(Exponential(0.1, 0.05), X, 1, 0, nugget=0.05)[:, 0]
    with pytest.warns(ConvergenceWarning, match="length_scale .* exceeds the extent 1.4.* of the sites"):
        kriging = Kriging(Matern(smoothness=1.5), fit_parameters=True).fit(X, y)
    assert not kriging.converged_ and kriging.cov_.length_scale > 1.4
    with pytest.warns(ConvergenceWarning, match=r"length_scale\[[01]\] .* exceeds the extent 0.99"):
        Kriging(Matern(1.0, (1.0, 1.0), 1.5), fit_parameters=True).fit(X, y)
    assert Kriging(Exponential(1.0), trend="linear", fit_parameters=True).fit(X, y).converged_


def test_bounds_are_told():
    X = points_of("uniform", 120, 1)
    y = simulate(Gaussian(1.0, 0.2), X, 1, 0, nugget=1e-4)[:, 0]
    with pytest.warns(ConvergenceWarning, match="smoothness ended at 10, as far as it is allowed to go"):
        kriging = Kriging(Matern(1.0, 0.2, 2.5), 1e-4, fit_parameters=["length_scale", "smoothness"]).fit(X, y)
    assert not kriging.converged_


@pytest.mark.parametrize("slope, told", [(1.0, True), (-1.0, False)])
def test_a_parameter_that_stops_just_below_its_bound_is_told(slope, told):
    """Where the likelihood still rises towards the bound, the bound ends it."""
    model = Model(Matern(1.0, 0.2, 9.95), 0.0, ("smoothness",))

    def evaluate(model):
        value = LogLikelihood(slope * model.theta[0], gradient=np.array([slope]))
        return estimation.Point(model, value, np.array([[1e4]]), 1.0)

    found = estimation.climbed(evaluate, evaluate(model), enough=1.0)
    assert any("smoothness ended at 9.95" in message for message in found.messages) == told


# Variograms


def test_the_empirical_variogram_estimates_the_theoretical_one():
    cov, means = Exponential(2.0, 0.1), []
    X = points_of("uniform", 1500, 2)
    Y = simulate(cov, X, 10, 0, nugget=0.3)
    for y in Y.T:
        gamma = empirical_variogram(X, y)
        assert (np.diff(gamma.distance) > 0).all() and gamma.count.sum() == gamma.pairs.shape[1]
        means.append(gamma.value)
    expected = 0.3 + 2 - cov.at_distance(gamma.distance)
    np.testing.assert_allclose(np.mean(means, axis=0), expected, rtol=0.2)
    assert gamma.value[0] < 0.5 * gamma.value[-1]


@pytest.mark.parametrize(
    "cov, nugget", [(Exponential(2.0, 0.05), 0.1), (Matern(0.3, 0.1, 1.5) + Nugget(0.1), 0.0)], ids=repr
)
def test_the_start_is_near_the_truth(cov, nugget):
    X = points_of("uniform", 2000, 2)
    y = simulate(cov, X, 1, 0, nugget=nugget)[:, 0]
    truth = Model(cov, nugget)
    (start,) = starts_from_variogram(truth.scaled(10.0, 30.0), X, y)
    assert abs(start.theta - truth.theta).max() < 1.2
    assert start.names == truth.names


@pytest.mark.slow
def test_pure_noise_is_told():
    X = points_of("uniform", 500, 2)
    y = np.random.default_rng(0).standard_normal(500)
    starts = starts_from_variogram(Model(Exponential(), 0.0), X, y)
    assert all(np.isfinite(start.theta).all() for start in starts)
    shares = [start.nugget / (start.nugget + start.cov.variance_at_zero) for start in starts]
    assert min(shares) < 0.01 and max(shares) > 0.4  # noise, or a field of short length: both may be likely
    with pytest.warns(ConvergenceWarning, match="independent data are as likely"):
        kriging = Kriging(Exponential(), fit_parameters=True).fit(X, y)
    assert not kriging.converged_
    assert kriging.predict(X, return_std=True)[0].std() < 0.5


@pytest.mark.filterwarnings("ignore:maximum likelihood")
@pytest.mark.parametrize("outliers", [0, 4])
def test_estimates_do_not_depend_on_units(outliers):
    """Values like the emergency of SIC2004, where the variogram shows a nugget alone: a release at few sites."""
    X, y = sample(Exponential(0.4, 0.1), 120, 1.0, 3)
    y[:outliers] += 20
    found = [Kriging(Exponential(), fit_parameters=True).fit(unit * X, y) for unit in (1e-4, 1.0, 1e6)]
    best = [k.log_marginal_likelihood() for k in found]
    np.testing.assert_allclose(best, best[0], atol=2e-2)
    started = Kriging(Exponential(1.0, 0.1), 1.0, fit_parameters=True).fit(X, y)
    assert best[0] > started.log_marginal_likelihood() - 2e-2


def test_iterations_that_end_early_are_told(monkeypatch):
    monkeypatch.setattr(estimation, "MOST", 1)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations"):
        Kriging(Exponential(), fit_parameters=True).fit(*sample(Exponential(2.0, 0.2), 100))


# Refusals


@pytest.mark.parametrize("X, y, words", [
    (points_of("uniform", 50, 2), np.full(50, 3.0), "y: expected values that vary around the trend"),
    (points_of("uniform", 2, 2), np.array([1.0, 2.0]), "y: expected at least 3 places .* got n_samples = 2"),
    (points_of("all_equal", 50, 2), np.arange(50.0), "y: expected at least 3 places .* got n_samples = 1"),
], ids=["constant data", "two sites", "one place"])  # fmt: skip
def test_data_that_tell_nothing_are_refused(X, y, words):
    with pytest.raises(ValueError, match=words):
        Kriging(Exponential(), fit_parameters=True).fit(X, y)


def test_a_covariance_without_free_numbers_is_refused():
    X, y = sample(Exponential(), 20)
    with pytest.raises(ValueError, match="cov: expected a covariance with smoothness to estimate"):
        Kriging(Exponential(), fit_parameters="smoothness").fit(X, y)


@pytest.mark.parametrize("cov, kinds, words", [
    (Exponential(), ["variance", "smoothness"], "cov: expected a covariance with smoothness to estimate, got Expon"),
    (from_distance(lambda r: np.exp(-r)), True, "has no numbers that can be estimated; write it as an Expression"),
    (Exponential() + 2.0 * from_distance(lambda r: np.exp(-r)), True, "has no numbers that can be estimated"),
    (on_sphere(Expression("exp(-r / 300)")), True, "has no numbers that can be estimated"),
    (Expression("exp(-r / l) + c * r", l=0.3, c=-1e-3), True, "c: expected a number above 0 to be estimated, got -0.0"),
    (Exponential(), ["length"], "parameters: expected some of variance, .*, got .'length'.$"),
], ids=range(6))  # fmt: skip
def test_parameters_that_cannot_be_estimated_are_refused(cov, kinds, words):
    X, y = sample(Exponential(2.0, 0.2), 20)
    with pytest.raises(ValueError, match=words):
        Kriging(cov, fit_parameters=kinds).fit(X, y)
    if kinds is True and "above 0" not in words:
        assert Kriging(cov, fit_parameters=["nugget"]).fit(X, y).parameters_["nugget"] > 0


def test_data_that_disagree_keep_their_nugget():
    X, y = sample(Matern(2.0, 0.2, 1.5), 100, 0.0)
    X, y = np.concatenate([X, X[:10]]), np.concatenate([y, y[:10] + 1e-4])
    kriging = Kriging(Matern(1.0, 1.0, 1.5), fit_parameters=True).fit(X, y)
    assert 1e-12 < kriging.nugget_ < 1e-5
    data = Data(places_of(X, y, np.ones(110)), trend_of("constant", 2))
    with pytest.raises(ValueError, match="one value a site"):
        data.log_likelihood(Model(kriging.cov_, 0.0))
