"""What is known of estimated parameters: all of them by one word, intervals on their own scale, profiles."""

import numpy as np
import pytest
from kriging_problems import sample
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning

from h2gpu.covariance import Exponential, Matern, PoweredExponential
from h2gpu.statistics import Kriging, log_likelihood
from h2gpu.statistics.likelihood import estimation


def test_one_word_estimates_the_smoothness_and_a_kept_one_is_told(caplog):
    X, y = sample(Matern(2.0, 0.2, 1.5), 250, 0.01)
    with caplog.at_level("WARNING", logger="h2gpu"):
        kept = Kriging(Matern(1.0, 1.0, 0.7), fit_parameters=True).fit(X, y)
        assert 'smoothness 0.7 is kept as given; fit_parameters="all" estimates it too' in caplog.text
        caplog.clear()
        fitted = Kriging(Matern(1.0, 1.0, 0.7), fit_parameters="all").fit(X, y)
        Kriging(Exponential(1.0, 1.0), fit_parameters="all").fit(X, y)
    assert not caplog.text and kept.cov_.smoothness == 0.7
    assert list(fitted.parameters_) == ["variance", "length_scale", "smoothness", "nugget"]
    assert fitted.log_marginal_likelihood() > kept.log_marginal_likelihood()
    shape = Kriging(PoweredExponential(1.0, (1.0, 1.0), 1.2, rotation=0.1), fit_parameters="all").fit(X, y)
    assert {"exponent", "rotation", "length_scale[1]"} < shape.parameters_.keys()


def test_intervals_are_normal_in_the_logarithm_and_cover_the_truth():
    X, y = sample(Exponential(2.0, (0.5, 0.15), rotation=0.6), 200)
    kriging = Kriging(Exponential(1.0, (1.0, 1.0), rotation=0.0), fit_parameters=True).fit(X, y)
    for name, (low, high) in kriging.parameter_intervals_.items():
        value, error = kriging.parameters_[name], 1.959964 * kriging.parameter_errors_[name]
        expected = (
            (value - error, value + error) if name == "rotation" else (value * np.exp(-error), value * np.exp(error))
        )
        np.testing.assert_allclose((low, high), expected, rtol=1e-6)
    low, high = kriging.parameter_intervals_["variance"]
    assert low < 2.0 < high
    inner = kriging.estimation_.intervals(0.5)["variance"]
    assert low < inner[0] < inner[1] < high
    assert Kriging(Exponential()).fit(X, y).parameter_intervals_ == {}


def test_a_profile_is_the_maximum_over_the_others():
    X, y = sample(Exponential(2.0, 0.2), 80)
    kriging = Kriging(Exponential(), 0.1, fit_parameters=["variance", "length_scale"]).fit(X, y)
    profile = kriging.profile("length_scale", [0.1, 0.3, 1.0])
    for length, value in zip(profile.values, profile.log_likelihood):
        negative = lambda s, l=length: -log_likelihood(Exponential(np.exp(s), l), X, y, 0.1, "constant")  # noqa: E731
        assert value == pytest.approx(-minimize_scalar(negative, bounds=(-4, 6), method="bounded").fun, abs=1e-3)
    assert profile.highest == pytest.approx(kriging.log_marginal_likelihood(), abs=1e-4)
    assert profile.best == pytest.approx(kriging.cov_.length_scale, rel=1e-2)
    alone = (
        Kriging(Exponential(2.0, 1.0), 0.1, fit_parameters=["length_scale"]).fit(X, y).profile("length_scale", [0.2])
    )
    assert alone.log_likelihood[0] == pytest.approx(log_likelihood(Exponential(2.0, 0.2), X, y, 0.1, "constant"))


def test_the_interval_of_a_profile_is_where_the_likelihood_has_dropped():
    X, y = sample(Exponential(2.0, 0.2), 120)
    kriging = Kriging(Exponential(), fit_parameters=True).fit(X, y)
    profile = kriging.profile("length_scale")
    assert len(profile.values) == 12 and (np.diff(profile.values) > 0).all()
    assert (profile.log_likelihood < profile.highest).all()
    low, high = profile.interval()
    v = np.append(profile.values, profile.best)
    order = np.argsort(v)
    curve = np.interp([low, high], v[order], np.append(profile.log_likelihood, profile.highest)[order])
    np.testing.assert_allclose(curve, profile.highest - 1.920729, atol=1e-5)
    assert low < kriging.cov_.length_scale < high
    wald = kriging.parameter_intervals_["length_scale"]
    assert abs(np.log(low / wald[0])) < 0.5 and abs(np.log(high / wald[1])) < 1.0
    assert profile.interval(0.5)[1] < high


def test_the_interval_of_a_curve_that_is_no_parabola_is_found_between_far_values():
    """A linear variogram: nothing tells how long the length is, only that it is no shorter than the domain."""
    X, y = sample(Exponential(2.0, 0.2), 80, 0.01)
    y = y + 8 * X[:, 0]
    with pytest.warns(ConvergenceWarning, match="length_scale .* exceeds the extent"):
        profile = Kriging(Exponential(), fit_parameters=True).fit(X, y).profile("length_scale")
    low = profile.interval()[0]
    at = np.searchsorted(profile.values, low)
    assert np.diff(profile.log_likelihood[at - 1 : at + 1]) < 1.6 and len(profile.values) > 12
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = profile.plot()
    assert ax.get_xscale() == "log" and ax.get_ylim()[0] >= profile.highest - 8
    matplotlib.pyplot.close("all")


def test_many_sites_have_profiles_by_vecchia(monkeypatch):
    X, y = sample(Exponential(2.0, 0.2), 200)
    exact = Kriging(Exponential(), fit_parameters=True).fit(X, y).profile("nugget", [0.05, 0.2])
    monkeypatch.setattr(estimation, "EXACT", 100)
    near = Kriging(Exponential(), fit_parameters=True, refine=False).fit(X, y).profile("nugget", [0.05, 0.2])
    drops = [profile.log_likelihood - profile.highest for profile in (exact, near)]
    np.testing.assert_allclose(*drops, atol=0.3)


def test_pictures_of_profiles():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    X, y = sample(Exponential(2.0, 0.2), 60)
    profile = Kriging(Exponential(), 0.1, fit_parameters=["variance", "length_scale"]).fit(X, y).profile("variance")
    ax = profile.plot()
    assert ax.get_xlabel() == "variance" and len(ax.lines[0].get_xdata()) == 13
    np.testing.assert_allclose([line.get_xdata()[0] for line in ax.lines[2:]], profile.interval())
    pyplot.close("all")


def test_wrong_profiles_are_refused():
    X, y = sample(Exponential(2.0, 0.2), 40)
    kriging = Kriging(Exponential(), 0.1, fit_parameters=["variance"]).fit(X, y)
    with pytest.raises(ValueError, match="profile: expected one of the estimated variance, got 'length_scale'"):
        kriging.profile("length_scale")
    with pytest.raises(ValueError, match="values: expected finite numbers above 0"):
        kriging.profile("variance", [0.0, 1.0])
    with pytest.raises(ValueError, match="level: expected a number between 0 and 1"):
        kriging.profile("variance", [2.0]).interval(95)
    with pytest.raises(ValueError, match="profile: expected parameters that this object has estimated"):
        Kriging(Exponential(), 0.1).fit(X, y).profile("variance")
