"""Variograms: the estimators of the textbooks over all pairs, GSTools' and gstat's values, fits that find the truth."""

import math

import numpy as np
import pytest
from reference import points_of
from sklearn.exceptions import ConvergenceWarning

from h2gpu.covariance import Exponential, Matern, Nugget, Spherical, on_sphere
from h2gpu.statistics import Kriging, simulate, variogram
from h2gpu.statistics.likelihood.starts import nonnegative
from h2gpu.statistics.variography.empirical import EmpiricalVariogram

MEUSE = np.array([  # variogram(log(zinc) ~ 1, meuse) of gstat: pairs, distance, γ (its vignette, Pebesma 2022)
    [57, 79.29244, 0.1234479], [299, 163.97367, 0.2162185], [419, 267.36483, 0.3027859],
    [457, 372.73542, 0.4121448], [547, 478.4767, 0.4634128], [533, 585.34058, 0.5646933],
    [574, 693.14526, 0.5689683], [564, 796.18365, 0.6186769], [589, 903.1465, 0.6471479],
    [543, 1011.29177, 0.6915705], [500, 1117.86235, 0.7033984], [477, 1221.3281, 0.603877],
    [452, 1329.16407, 0.6517158], [457, 1437.2562, 0.5665318], [415, 1543.20248, 0.5748227],
])  # fmt: skip


def field(n=300, dim=2, seed=0):
    X = points_of("uniform", n, dim, seed)
    return X, simulate(Exponential(2.0, 0.2), X, 1, seed, nugget=0.3)[:, 0]


def by_hand(X, z, edges, estimator, allowed=lambda d: True):
    """Means over all pairs, one by one."""
    classes = [[] for _ in edges[1:]]
    for i in range(len(X)):
        for j in range(i):
            d = X[i] - X[j]
            h = math.sqrt(d @ d)
            k = next((k for k in range(len(edges) - 1) if edges[k] < h <= edges[k + 1]), None)
            if k is not None and allowed(d):
                classes[k].append((h, abs(z[i] - z[j])))
    for pairs in filter(None, classes):
        h, d = np.transpose(pairs)
        robust = np.mean(d**0.5) ** 4 / (0.457 + 0.494 / len(d)) / 2
        yield h.mean(), np.mean(d**2) / 2 if estimator == "classical" else robust, len(d)


@pytest.mark.parametrize("estimator", ["classical", "cressie-hawkins"])
@pytest.mark.parametrize("direction", [None, 0.4, (1.0, -1.0)], ids=repr)
def test_the_estimators_are_those_of_the_textbook(estimator, direction):
    X, z = field(60)
    edges = np.array([0.0, 0.1, 0.2, 0.4, 0.9])
    u = None if direction is None else [np.cos(0.4), np.sin(0.4)] if direction == 0.4 else np.array(direction) / 2**0.5

    def allowed(d):
        return u is None or abs(d @ u) >= math.cos(0.3) * math.sqrt(d @ d)

    expected = np.array(list(by_hand(X, z, edges, estimator, allowed))).T
    found = variogram(X, z, bins=edges, estimator=estimator, direction=direction, tolerance=0.3)
    for ours, theirs in zip((found.distance, found.value, found.count), expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_gstools_finds_the_same():
    gstools = pytest.importorskip("gstools")
    X, z = field(200)
    edges = np.linspace(0, 0.5, 11)
    _, gamma, count = gstools.vario_estimate(X.T, z, edges, return_counts=True)
    found = variogram(X, z, bins=edges)
    np.testing.assert_allclose(found.value, gamma, rtol=1e-12)
    np.testing.assert_array_equal(found.count, count)
    lonlat = np.column_stack([X[:, 0] * 40, 20 + X[:, 1] * 40])
    edges = np.linspace(0, 0.3, 8)
    _, gamma = gstools.vario_estimate(lonlat[:, ::-1].T, z, edges, latlon=True)
    sphere = variogram(lonlat, z, bins=6371 * edges, sphere=6371.0)
    np.testing.assert_allclose(sphere.value, gamma, rtol=1e-10)
    assert sphere.distance[-1] > 1000


def test_a_published_fit_is_found_again():
    """gstat: fit.variogram(v, vgm(1, "Sph", 900, 1)) gives nugget 0.0507, partial sill 0.5906, range 897."""
    meuse = EmpiricalVariogram(MEUSE[:, 1], MEUSE[:, 2], MEUSE[:, 0].astype(int))
    fit = meuse.fit(Spherical(), weights="distance")
    assert fit.nugget == pytest.approx(0.05066, rel=2e-3)
    assert fit.cov.variance == pytest.approx(0.59061, rel=2e-3)
    assert fit.cov.length_scale == pytest.approx(897.02, rel=2e-3)
    nearby = meuse.fit(fit.cov, fit.nugget, weights="model")
    assert nearby.cov.length_scale == pytest.approx(897, rel=0.2)
    pairs, h, value = MEUSE.T

    def cressie(length):
        gamma = nearby.nugget + nearby.cov.variance - Spherical(nearby.cov.variance, length).at_distance(h)
        return float((pairs * (value / gamma - 1) ** 2).sum())

    assert nearby.error == pytest.approx(cressie(nearby.cov.length_scale))
    assert all(cressie(factor * nearby.cov.length_scale) > nearby.error for factor in (0.99, 1.01))


@pytest.mark.parametrize("weights", ["model", "distance", "pairs"])
@pytest.mark.parametrize("cov, nugget", [(Exponential(2.0, 30.0), 0.5), (Spherical(3.0, 70.0), 0.0)], ids=repr)
def test_an_exact_variogram_gives_its_model_back(cov, nugget, weights):
    h = np.linspace(2, 100, 25)
    exact = EmpiricalVariogram(h, nugget + cov.variance - cov.at_distance(h), np.full(25, 100))
    fit = exact.fit(type(cov)(), weights=weights)
    assert fit.cov.length_scale == pytest.approx(cov.length_scale, rel=1e-3)
    assert fit.cov.variance == pytest.approx(cov.variance, rel=1e-3) and fit.nugget == pytest.approx(nugget, abs=1e-3)
    assert fit.error < 1e-4 and fit.gamma(0.0) == 0
    within = exact.fit(type(cov)() + Nugget(0.1), weights=weights)
    assert within.nugget == 0 and within.cov.nugget == pytest.approx(nugget, abs=1e-3)
    fixed = exact.fit(type(cov)(1.0, cov.length_scale), nugget, parameters=["variance"], weights=weights)
    assert fixed.cov.length_scale == cov.length_scale and fixed.nugget == nugget
    assert fixed.cov.variance == pytest.approx(cov.variance, rel=1e-3)


def test_directions_and_spheres_are_fitted_in_their_own_distance():
    cov, h = Exponential(1.0, (50.0, 10.0), rotation=0.6), np.linspace(1, 80, 30)
    along = np.stack([h * np.cos(0.6), h * np.sin(0.6)], axis=1)
    exact = EmpiricalVariogram(h, 1 - cov([[0.0, 0.0]], along)[0], np.full(30, 50), direction=0.6)
    assert exact.fit(Exponential(), parameters=["length_scale"]).cov.length_scale == pytest.approx(50, rel=1e-3)
    assert exact.fit(cov, parameters=["variance"]).cov.variance == pytest.approx(1, rel=1e-3)
    sphere, degrees = on_sphere(Matern(1.0, 900.0, 1.5), distance="chordal"), np.linspace(1, 60, 30)
    values = 1 - sphere([[0.0, 0.0]], np.stack([degrees, 0 * degrees], axis=1))[0]
    exact = EmpiricalVariogram(np.deg2rad(degrees) * 6371, values, np.full(30, 50), sphere=6371.0)
    fit = exact.fit(on_sphere(Matern(1.0, 1.0, 1.5), distance="chordal"))
    assert fit.cov.covariance.length_scale == pytest.approx(900, rel=1e-2)
    with pytest.raises(ValueError, match="cov: expected one on the sphere"):
        exact.fit(Matern())


def test_a_sample_of_pairs_says_the_same_and_the_fit_serves_kriging():
    X, z = field(1200)
    edges = np.linspace(0, 0.5, 8)
    every, some = (variogram(X, z, bins=edges, pairs=pairs) for pairs in (10**6, 100_000))
    assert every.count.sum() > 300_000 and some.count.sum() < 110_000
    np.testing.assert_allclose(some.value, np.interp(some.distance, every.distance, every.value), rtol=0.08)
    fit = every.fit(Exponential())
    assert Kriging(fit.cov, fit.nugget).fit(X, z).score(X, z) > 0.5
    assert 0.05 < fit.cov.length_scale < 1 and fit.cov.variance == pytest.approx(2, rel=0.5)
    assert len(variogram(X, z).value) == 15 and variogram(X, z).distance[-1] == pytest.approx(2**0.5 / 3, rel=0.1)


def test_without_any_correlation_the_nugget_stands_for_both():
    """Every distance beyond the range: the columns of the fit are equal, and SciPy 1.13 finds them singular."""
    w = np.array([1.0, 2.0, 3.0])
    (nugget, variance), residual = nonnegative(np.stack([w, w], axis=1), 2 * w)
    assert (nugget, variance) == (pytest.approx(2.0), 0.0) and residual < 1e-12


def test_a_class_of_equal_values_is_no_infinite_weight():
    """Indicators of a smooth field: all pairs of the first class are alike, γ = 0 there."""
    cov, h = Spherical(1.0, 50.0), np.linspace(2, 100, 25)
    exact = np.where(h < 5, 0.0, 1 - cov.at_distance(h))
    fit = EmpiricalVariogram(h, exact, np.full(25, 100)).fit(Spherical())
    assert fit.cov.length_scale == pytest.approx(50, rel=0.02) and fit.cov.variance == pytest.approx(1, rel=0.02)
    with pytest.raises(ValueError, match="variogram: expected values that vary"):
        EmpiricalVariogram(h, 0 * h, np.full(25, 100)).fit(Spherical())


def test_a_length_scale_beyond_the_distances_is_told():
    h = np.linspace(1, 10, 10)
    straight = EmpiricalVariogram(h, 0.3 * h, np.full(10, 100))
    with pytest.warns(ConvergenceWarning, match="length_scale .* is far beyond the longest distance, 10"):
        straight.fit(Exponential())
    straight.fit(Exponential(), parameters=["variance", "nugget"])  # a given one is the user's


def test_pictures(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    X, z = field(100)
    found = variogram(X, z)
    ax = found.plot(found.fit(Exponential()), units="km", value_units="mm")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("distance [km]", "semivariance [mm²]")
    line = ax.lines[0]
    np.testing.assert_allclose(line.get_ydata(), found.fit(Exponential()).gamma(line.get_xdata()))
    np.testing.assert_allclose(ax.collections[0].get_offsets().data, np.stack([found.distance, found.value], axis=1))
    assert found.plot(ax=ax) is ax
    pyplot.close("all")


def test_maps_of_a_kriging_are_its_predictions():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    X, z = field(60)
    kriging = Kriging(Exponential(2.0, 0.2), 0.3).fit(X * [2.0, 1.0], z)
    mean, std = kriging.plot(20, units="km", value_units="mm")
    assert mean.get_xlabel() == "x [km]" and std.get_title() == "standard deviation"
    left, right, bottom, top = mean.images[0].get_extent()
    image = mean.images[0].get_array()
    assert image.shape == (10, 20) and left < 0.1 and right > 1.9
    x, y = left + (right - left) * 3.5 / 20, bottom + (top - bottom) * 6.5 / 10
    expected = kriging.predict([[x, y]], return_std=True)
    np.testing.assert_allclose([image[6, 3], std.images[0].get_array()[6, 3]], np.ravel(expected), rtol=1e-9)
    assert kriging.plot(10, ax=mean) is mean
    line = Kriging(Exponential()).fit(X[:, :1], z)
    with pytest.raises(ValueError, match="plot: maps are of two coordinates, got 1"):
        line.plot()
    pyplot.close("all")


@pytest.mark.parametrize("change, words", [
    ({"values": np.ones(9)}, "values: expected 20 numbers, one a site"),
    ({"values": np.where(np.arange(20) == 3, np.nan, 1.0)}, "values: expected finite numbers, got NaN .* in row 3"),
    ({"sites": np.zeros((20, 2))}, "sites: expected different places, got 20 times the same"),
    ({"direction": "north"}, "direction: expected an angle in radians, or a vector of 2 other than zero, got 'north'"),
    ({"direction": 45}, "direction: expected radians, .* got 45; take np.deg2rad of degrees"),
    ({"direction": (1.0, np.nan)}, "direction: expected an angle in radians, or a vector of 2"),
    ({"estimator": "madogram"}, "estimator: expected one of classical, cressie-hawkins"),
    ({"direction": (1.0, 2.0, 3.0)}, "direction: expected an angle in radians, or a vector of 2"),
    ({"direction": (0.0, 0.0)}, "a vector of 2 other than zero"),
    ({"direction": 0.3, "tolerance": 2.0}, "tolerance: expected radians above 0, up to π/2"),
    ({"bins": [3.0, 1.0]}, "bins: expected two or more ascending edges"),
    ({"bins": 0}, "bins: expected an integer from 1"),
    ({"longest": -1.0}, "longest: expected a finite number > 0"),
    ({"bins": [50.0, 60.0]}, "expected pairs within the classes of distance, got none"),
    ({"sphere": 0.0}, "sphere: expected a finite number > 0"),
    ({"sphere": 1.0, "direction": 0.0}, "sphere: expected .lon, lat. and no direction"),
    ({"pairs": 0}, "pairs: expected an integer from 1"),
], ids=repr)  # fmt: skip
def test_what_is_wrong_is_told(change, words):
    X, z = field(20)
    with pytest.raises(ValueError, match=words):
        variogram(**{"sites": X, "values": z} | change)
    with pytest.raises(ValueError, match="weights: expected one of"):
        variogram(X, z).fit(Exponential(), weights="gamma")
    with pytest.raises(ValueError, match=r"or variogram\(…, direction=…\)"):
        variogram(X, z).fit(Exponential(1.0, (1.0, 2.0)))
