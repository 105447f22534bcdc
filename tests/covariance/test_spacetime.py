"""Space and time: the published formulas, their limits, positive definiteness, trees that know the scale of time."""

import json

import numpy as np
import pytest
from covariances import IN_TIME, random_lonlat, random_points

import h2gpu
from h2gpu.covariance import (
    Constant,
    Cubic,
    Exponential,
    Expression,
    Gaussian,
    Gneiting,
    Matern,
    Nugget,
    PoweredExponential,
    RationalQuadratic,
    SpaceTime,
    from_parameters,
    on_sphere,
)
from h2gpu.covariance.models.spacetime import halved
from h2gpu.covariance.sites import Sites


def places_and_times(n=60, seed=0):
    """(n, 3): unit square, a hundred units of time."""
    return random_points(n, 3, seed) * [1.0, 1.0, 100.0]


def lags(X):
    """Distances in space and lags in time of all pairs."""
    h = np.linalg.norm(X[:, None, :2] - X[None, :, :2], axis=2)
    return h, abs(X[:, None, 2] - X[None, :, 2])


def test_gneiting_is_the_published_formula():
    """Equation 14, in two dimensions: σ²/(a|u|^2α + 1) exp(−c‖h‖^2γ / (a|u|^2α + 1)^βγ)."""
    X, c, gamma, tau, alpha, beta = places_and_times(), 3.0, 0.6, 30.0, 0.7, 0.8
    h, u = lags(X)
    psi = 1 + tau ** (-2 * alpha) * u ** (2 * alpha)
    published = 2.0 / psi * np.exp(-c * h ** (2 * gamma) / psi ** (beta * gamma))
    space = PoweredExponential(2.0, c ** (-0.5 / gamma), 2 * gamma)
    np.testing.assert_allclose(Gneiting(space, tau, alpha, beta)(X), published, rtol=1e-12)


def test_without_interaction_it_is_separable():
    X, space = places_and_times(), Matern(2.0, (0.3, 0.6), 1.2, rotation=0.4)
    cauchy = RationalQuadratic(1.0, 30.0 / 2**0.5, 1.0)  # (1 + (u/τ)²)^(−1)
    separable = SpaceTime(space, cauchy)
    np.testing.assert_allclose(Gneiting(space, 30.0, 1.0, 0.0)(X), separable(X), rtol=1e-12)
    assert abs(Gneiting(space, 30.0, 1.0, 1.0)(X) - separable(X)).max() > 0.1


def test_separable_is_the_product():
    X = places_and_times()
    found = SpaceTime(Exponential(2.0, (0.3, 0.1)), Matern(1.0, 20.0, 1.5))(X)
    np.testing.assert_allclose(found, Exponential(2.0, (0.3, 0.1))(X[:, :2]) * Matern(1.0, 20.0, 1.5)(X[:, 2:]))
    at_once = SpaceTime(Exponential(2.0, 0.3), Exponential())(X * [1, 1, 0])
    np.testing.assert_allclose(at_once, Exponential(2.0, 0.3)(X[:, :2]))


@pytest.mark.parametrize("cov", IN_TIME, ids=repr)
def test_matrices_are_positive_definite_and_files_hold_them(cov):
    X = places_and_times(300)
    C = cov(X)
    np.testing.assert_array_equal(C, C.T)
    np.testing.assert_allclose(np.diagonal(C), cov.variance_at_zero + cov.nugget, rtol=1e-14)
    assert np.linalg.eigvalsh(C).min() > -1e-12 * len(X)
    assert from_parameters(json.loads(json.dumps(cov.parameters()))) == cov
    np.testing.assert_allclose((2 * cov)(X), 2 * C)


def test_beyond_its_limits_gneitings_formula_is_no_covariance():
    """β = 1 is the largest: with 2, written as an Expression, an eigenvalue is far below zero."""
    text = "exp(-(pow(x[0]-y[0],2) + pow(x[1]-y[1],2)) / pow(1 + pow(x[2]-y[2],2), b)) / (1 + pow(x[2]-y[2],2))"
    grid = np.stack(np.meshgrid(*[np.arange(6) * 0.7] * 3), axis=-1).reshape(-1, 3)
    valid, invalid = Expression(text, b=1.0), Expression(text, b=4.0)
    np.testing.assert_allclose(valid(grid), Gneiting(Gaussian(1.0, 0.5**0.5), 1.0, 1.0, 1.0)(grid), rtol=1e-12)
    assert np.linalg.eigvalsh(valid(grid)).min() > -1e-12
    assert np.linalg.eigvalsh(invalid(grid)).min() < -1e-3


# Coordinates of trees


@pytest.mark.parametrize("cov", IN_TIME, ids=repr)
def test_sites_know_the_scale_of_time(cov):
    """In the trees' coordinates the field varies about equally fast along each: 100 units of time become about one."""
    X = places_and_times(50)
    sites = Sites.of(X, cov)
    np.testing.assert_allclose(sites.cov(sites.points), cov(X), rtol=1e-10)
    term = min(getattr(sites.cov, "terms", [sites.cov]), key=lambda term: term.nugget)
    along = [np.zeros((1, 3)) + 0.1 * np.eye(3)[k] for k in (0, 2)]
    lost = [term.variance_at_zero - float(term(np.zeros((1, 3)), x)[0, 0]) for x in along]
    assert lost[0] > 0 and np.ptp(sites.points[:, 2]) < 60


def test_units_balance_space_and_time():
    cov = SpaceTime(Matern(2.0, (8.0, 2.0), 1.5), Exponential(1.0, 3600.0))
    near, soon = halved(Matern(1.0, 8.0, 1.5), 1), halved(Exponential(1.0, 3600.0), 1)
    assert cov.units == (1.0, 0.25, soon / near)
    assert (near, soon) == (8.0, 4096.0)
    assert SpaceTime(Exponential(), Constant()).units is None


def test_on_the_sphere():
    X = np.column_stack([random_lonlat(40), np.linspace(0, 9, 40)])
    globe, series = on_sphere(Exponential(2.0, 3000.0)), Exponential(1.0, 3.0)
    np.testing.assert_allclose(SpaceTime(globe, series)(X), globe(X[:, :2]) * series(X[:, 2:]), rtol=1e-12)
    sites = Sites.of(X, SpaceTime(globe, series))
    assert sites.dim == 4
    found = sites.cov.values(sites.points[:, None], sites.points[None])
    np.testing.assert_allclose(found, globe(X[:, :2]) * series(X[:, 2:]), rtol=1e-7)


@pytest.mark.parametrize("cov, rtol", [
    (SpaceTime(Matern(1.0, 0.3, 1.5), Matern(1.0, 40.0, 1.5)), 1e-5), (Gneiting(Gaussian(1.0, 0.3), 30.0, 1.0), 1e-6),
    (SpaceTime(Exponential(1.0, 0.4), Exponential(1.0, 5.0)), 1e-3),
], ids=repr)  # fmt: skip
def test_the_promised_accuracy_is_kept(cov, rtol):
    X = places_and_times(1500)
    C = h2gpu.covariance_matrix(X, cov, rtol)
    assert h2gpu.sampled_error(C, X, cov, rows=len(X)) <= rtol
    assert C.nbytes < 0.7 * 8 * len(X) ** 2


@pytest.mark.parametrize("make, words", [
    (lambda: SpaceTime(Exponential() + Nugget(0.1), Exponential()), "without nugget"),
    (lambda: SpaceTime(Exponential(), Exponential() + Nugget(0.1)), "for time a covariance of one coordinate"),
    (lambda: SpaceTime(Exponential(), Exponential(1.0, (1, 2))), "for time a covariance of one coordinate"),
    (lambda: SpaceTime(Exponential(), on_sphere(Exponential())), "for time a covariance of one coordinate"),
    (lambda: SpaceTime(SpaceTime(Exponential(), Exponential()), Exponential()), "SpaceTime: expected for space"),
    (lambda: SpaceTime(Exponential(1.0, (1, 2, 3)), Exponential(), 2), "space_dimension: expected 3, .* got 2"),
    (lambda: SpaceTime(Exponential(), Exponential(), 0), "space_dimension: expected an integer from 1"),
    (lambda: SpaceTime(Cubic(), Exponential(), 4), "space: expected at most 3 coordinates"),
    (lambda: SpaceTime(Exponential(), Exponential())(np.zeros((2, 2))), "expected 3 coordinates a point"),
    (lambda: Gneiting(Cubic()), "valid in any dimension"),
    (lambda: Gneiting(on_sphere(Exponential())), "Gneiting: expected for space an Exponential, Matern"),
    (lambda: Gneiting(Exponential(), -1.0), "time_scale: expected a finite number > 0"),
    (lambda: Gneiting(Exponential(), 1.0, 1.1), "time_exponent: expected a number up to 1"),
    (lambda: Gneiting(Exponential(), 1.0, 0.5, 1.1), "interaction: expected a number up to 1"),
    (lambda: Gneiting(Exponential(), 1.0, 0.5, -0.1), "interaction: expected a finite number ≥ 0"),
], ids=range(15))  # fmt: skip
def test_what_is_no_covariance_of_space_and_time_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
