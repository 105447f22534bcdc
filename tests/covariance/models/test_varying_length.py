"""Length scales that change from place to place: the published formula, its theorem, matrices, estimation, files."""

import json

import numpy as np
import pytest
from covariances import random_points

import h2gpu
from h2gpu.covariance import (
    Exponential,
    Gaussian,
    Matern,
    Modulated,
    Nugget,
    PoweredExponential,
    RationalQuadratic,
    Spherical,
    VaryingLength,
    from_parameters,
    on_sphere,
)
from h2gpu.covariance.sites import Sites
from h2gpu.statistics import Kriging, log_likelihood, simulate

KINDS = [Exponential, Matern, Gaussian, PoweredExponential, RationalQuadratic]
COVS = [
    VaryingLength(Exponential(2.0, 0.3), (1.5, -0.5), (0.5, 0.5)),
    VaryingLength(Matern(1.0, (0.5, 0.1), 1.5, rotation=0.6), (1.0, 2.0)) + Nugget(0.1),
    Modulated(VaryingLength(Matern(1.0, 0.2, 0.8), (-1.0, 0.0)), (0.5, 0.5)),
    VaryingLength(Exponential(1.0, (0.2, 0.5), rotation=0.4), (0.5, 0.0, 0.01), (0.5, 0.5, 100.0), columns=1),
    Modulated(Gaussian(1.0, 0.2), (0.0, 0.0, 0.01), columns=1) + Nugget(0.1),
]


def points(n, cov, seed=0):
    """Sites in the unit square, beside them a column from 0 to 200 that no place tells."""
    X = random_points(n, 2, seed)
    return np.column_stack([X, 200 * np.random.default_rng(seed + 1).random((n, cov.dimension - 2))])


def published(cov, X):
    """Paciorek and Schervish's formula with matrices Σ(x): |Σ_i|^¼ |Σ_j|^¼ |½(Σ_i + Σ_j)|^-½ ρ(Q^½)."""
    inner, d = cov.covariance, X.shape[1]
    g = np.exp((X - cov.center) @ cov.length_slopes)
    metric = np.diag(1 / np.broadcast_to(inner.length_scale, d).astype(float))
    if inner.rotation is not None:
        metric = metric @ np.asarray(inner.frame)
    one = np.linalg.inv(metric.T @ metric)
    S = g[:, None, None] ** 2 * one
    mean = 0.5 * (S[:, None] + S[None])
    h = X[:, None] - X[None]
    Q = np.einsum("ijk,ijkl,ijl->ij", h, np.linalg.inv(mean), h)
    det = np.linalg.det(S) ** 0.25
    unit = Matern(inner.variance, 1.0, inner.smoothness) if isinstance(inner, Matern) else Exponential(inner.variance)
    return det[:, None] * det / np.sqrt(np.linalg.det(mean)) * unit.at_distance(np.sqrt(Q))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_it_is_the_published_formula(d):
    X, lengths = random_points(40, d), (0.4, 0.1, 0.7)[:d]
    slopes, center = (1.0, -2.0, 0.5)[:d], (0.5, 0.2, 0.0)[:d]
    inners = [Exponential(2.0, 0.3), Matern(1.5, lengths, 1.5)]
    inners += [] if d == 1 else [Matern(1.0, lengths, 0.7, rotation=0.6 if d == 2 else (0.3, 0.5, 0.7))]
    for inner in inners:
        cov = VaryingLength(inner, slopes, center)
        np.testing.assert_allclose(cov(X), published(cov, X), rtol=1e-10, atol=1e-14)


def test_of_a_gaussian_it_is_a_convolution_of_kernels_of_the_local_length():
    """C(x, y) = ∫ k_x(u) k_y(u) du up to normalization, which proves positive definiteness."""
    cov, u = VaryingLength(Gaussian(1.0, 0.1), (2.0,)), np.linspace(-20, 20, 400001)[:, None]
    x = np.array([[0.0], [0.1], [0.5], [0.9]])
    scale = 0.1 * np.exp(2 * x[:, 0]) / 2**0.5  # the variances of both kernels add up to ½ (l(x)² + l(y)²)
    k = np.exp(-0.5 * ((u - x[:, 0]) / scale) ** 2)
    C = k.T @ k
    s = np.sqrt(np.diagonal(C))
    np.testing.assert_allclose(cov(x), C / np.outer(s, s), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_it_is_positive_definite(kind, d):
    """Lengths that change by e⁸ within the sites, in any dimension."""
    X = random_points(200, d)
    C = VaryingLength(kind(1.0, 0.3), (8.0, -3.0, 2.0)[:d], (0.5,) * d)(X)
    assert np.linalg.eigvalsh(C).min() > -1e-12 * len(X)


@pytest.mark.parametrize("cov", COVS, ids=repr)
def test_sites_scaling_and_files_keep_it(cov):
    X = points(100, cov)
    C, sites = cov(X), Sites.of(X, cov)
    np.testing.assert_allclose(C, C.T, rtol=1e-14)
    assert np.linalg.eigvalsh(C).min() > 0
    placed = sites.cov.values(sites.points[:, None], sites.points[None])
    np.testing.assert_allclose(placed + cov.nugget * np.eye(100), C, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(sites.cov.variances(sites.points) + cov.nugget, np.diagonal(C), rtol=1e-10)
    np.testing.assert_allclose((3 * cov)(X), 3 * C, rtol=1e-12)
    assert from_parameters(json.loads(json.dumps(cov.parameters()))) == cov


def test_columns_tell_no_distance():
    """Equal columns: the stationary covariance of the local length; the column alone changes nothing but the length."""
    X = random_points(50)
    for z in (0.0, 100.0):
        cov = VaryingLength(Matern(1.0, 0.2, 1.5), (0.0, 0.0, 0.01), columns=1)
        expected = Matern(1.0, 0.2 * np.exp(0.01 * z), 1.5)(X)
        np.testing.assert_allclose(cov(np.column_stack([X, np.full(50, z)])), expected, rtol=1e-10)
    units = np.array(COVS[3].units)
    assert 200 / units[2] < 0.1  # trees hardly see it


def test_files_of_before_have_no_columns():
    told = Modulated(Exponential(), (0.1, 0.2)).parameters()
    assert "columns" not in told and from_parameters(told).columns == 0


@pytest.mark.parametrize("cov", COVS[:4], ids=repr)
def test_the_promised_accuracy_is_kept(cov):
    X = points(1000, cov)
    if cov.dimension == 3:
        X[:, 2] = 100 + 100 * np.sin(4 * X[:, 0])  # a smooth landscape
    assert h2gpu.sampled_error(h2gpu.covariance_matrix(X, cov, 1e-6), X, cov, rows=1000) <= 1e-6


def test_predictions_of_many_are_those_of_the_dense_equations(monkeypatch):
    monkeypatch.setattr("h2gpu.statistics.systems.DENSE", 100)
    cov = COVS[3]
    X = points(400, cov)
    y = simulate(cov, X, 1, 0, nugget=0.1)[:, 0]
    mean, std = Kriging(cov, 0.1, None, std_rtol=0).fit(X[:380], y[:380]).predict(X[380:], return_std=True)
    K, k = cov(X[:380]) + 0.1 * np.eye(380), cov(X[380:], X[:380])
    np.testing.assert_allclose(mean, k @ np.linalg.solve(K, y[:380]), atol=1e-5)
    variance = np.diagonal(cov(X[380:])) - np.einsum("ij,ji->i", k, np.linalg.solve(K, k.T))
    np.testing.assert_allclose(std**2, variance, atol=1e-5)


def test_slopes_are_estimated_in_any_unit():
    X, truth = random_points(350), VaryingLength(Matern(2.0, 0.1, 1.5), (2.0, -1.0), (0.5, 0.5))
    y = simulate(truth, X, 1, 1, nugget=0.02)[:, 0]
    start = VaryingLength(Matern(1.0, 1.0, 1.5), (0.0, 0.0), (0.5, 0.5))
    found = Kriging(start, fit_parameters=True).fit(X, y)
    assert found.converged_ and found.log_marginal_likelihood() > log_likelihood(truth, X, y, 0.02, "constant")
    for k, slope in enumerate(truth.length_slopes):
        low, high = found.parameter_intervals_[f"length_slopes[{k}]"]
        assert low - (high - low) < slope < high + (high - low)
        assert (high - low) / 3.92 == pytest.approx(found.parameter_errors_[f"length_slopes[{k}]"], rel=1e-3)
    stationary = Kriging(Matern(1.0, 1.0, 1.5), fit_parameters=True).fit(X, y)
    assert found.log_marginal_likelihood() > stationary.log_marginal_likelihood() + 10
    metres = Kriging(VaryingLength(Matern(1.0, 1.0, 1.5), (0.0, 0.0), (5e4, 5e4)), fit_parameters=True).fit(1e5 * X, y)
    for name in ("length_slopes[0]", "length_slopes[1]"):
        assert 1e5 * metres.parameters_[name] == pytest.approx(found.parameters_[name], rel=2e-3)
    profile = found.profile("length_slopes[1]", values=[-2.0, -1.5, -0.5, 0.0])
    assert profile.log_likelihood.max() < profile.highest and profile.log_likelihood[3] < profile.highest - 2


def test_gradients_are_by_the_slopes_themselves():
    cov = Modulated(VaryingLength(Exponential(1.0, 2e3), (2e-4, 0.0), (5e3, 5e3)), (0.0, 1e-4), (5e3, 5e3))
    X = 1e4 * random_points(80)
    y = simulate(cov, X, 1, 0, nugget=0.1)[:, 0]
    told = log_likelihood(cov, X, y, 0.1, gradient=True)
    assert told.names[2:6] == ["length_slopes[0]", "length_slopes[1]", "slopes[0]", "slopes[1]"]
    h = 1e-8
    for k in range(2):
        moved = []
        for sign in (1, -1):
            b = np.array(cov.slopes)
            b[k] += sign * h
            moved.append(log_likelihood(Modulated(cov.covariance, tuple(b), cov.center), X, y, 0.1))
        assert told.gradient[4 + k] == pytest.approx((moved[0] - moved[1]) / (2 * h), rel=1e-3)


@pytest.mark.parametrize("make, words", [
    (lambda: VaryingLength(Spherical(), (1.0, 1.0)), "valid in any dimension"),
    (lambda: VaryingLength(Exponential() + Nugget(0.1), (1.0, 1.0)), "valid in any dimension"),
    (lambda: VaryingLength(on_sphere(Exponential()), (1.0, 1.0)), "valid in any dimension"),
    (lambda: VaryingLength(Exponential(), 1.0), "length_slopes: expected finite numbers"),
    (lambda: VaryingLength(Exponential(), (1.0, 1.0), (0.0,)), "one a coordinate, 1 of them, got 2"),
    (lambda: VaryingLength(Exponential(1.0, (1, 2, 3)), (1.0, 1.0)), "3 of them, got 2"),
    (lambda: VaryingLength(Exponential(1.0, (1, 2)), (1.0, 1.0), columns=1), "3 of them, got 2"),
    (lambda: VaryingLength(Exponential(), (1.0, 1.0), columns=2), "columns: expected an integer from 0 to 1, got 2"),
    (lambda: Modulated(COVS[3], (1.0, 1.0, 1.0), columns=0), "columns: expected an integer from 1 to 2, got 0"),
    (lambda: COVS[3] + Exponential(), "Sum: expected terms with the same columns of a table"),
    (lambda: COVS[0](np.zeros((2, 3))), "expected 2 coordinates a point"),
], ids=range(11))  # fmt: skip
def test_what_is_not_understood_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
