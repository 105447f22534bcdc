"""Variances that change from place to place: the formula, positive definiteness, matrices, estimation, files."""

import json

import numpy as np
import pytest
from covariances import random_points

import h2gpu
from h2gpu.covariance import Exponential, Matern, Modulated, Nugget, Spherical, from_parameters, on_sphere
from h2gpu.covariance.sites import Sites
from h2gpu.statistics import Kriging, log_likelihood, simulate
from h2gpu.statistics.systems.direct import is_direct

COVS = [
    Modulated(Exponential(2.0, 0.3), (1.5, -0.5), (0.5, 0.5)),
    Modulated(Matern(1.0, (0.5, 0.1), 1.5, rotation=0.6), (1.0, 2.0)) + Nugget(0.1),
    Modulated(Spherical(1.0, (0.7, 0.3)), (-1.0, 0.0), (1.0, 1.0)),
]


@pytest.mark.parametrize("cov", COVS, ids=repr)
def test_it_is_the_field_times_a_function(cov):
    X = random_points(150)
    inner = getattr(cov, "terms", [cov])[0]
    s = np.exp((X - inner.center) @ inner.slopes)
    C = cov(X)
    np.testing.assert_allclose(
        C - cov.nugget * np.eye(150), s[:, None] * s * inner.covariance(X), rtol=1e-12, atol=1e-14
    )
    assert np.linalg.eigvalsh(C).min() > 0
    sites = Sites.of(X, cov)
    np.testing.assert_allclose(sites.cov(sites.points), C, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(sites.cov.variances(sites.points) + cov.nugget, np.diagonal(C), rtol=1e-12)
    assert from_parameters(json.loads(json.dumps(cov.parameters()))) == cov
    np.testing.assert_allclose((3 * cov)(X), 3 * C)


@pytest.mark.parametrize("cov", COVS[:2], ids=repr)
def test_the_promised_accuracy_is_kept(cov):
    X = random_points(1200)
    assert h2gpu.sampled_error(h2gpu.covariance_matrix(X, cov, 1e-6), X, cov, rows=1200) <= 1e-6


def test_predictions_are_those_of_the_dense_equations():
    X, cov = random_points(160), COVS[0]
    y = simulate(cov, X, 1, 0, nugget=0.1)[:, 0]
    mean, std = Kriging(cov, 0.1, None).fit(X[:150], y[:150]).predict(X[150:], return_std=True)
    K, k = cov(X[:150]) + 0.1 * np.eye(150), cov(X[150:], X[:150])
    np.testing.assert_allclose(mean, k @ np.linalg.solve(K, y[:150]), atol=1e-9)
    variance = np.diagonal(cov(X[150:])) - np.einsum("ij,ji->i", k, np.linalg.solve(K, k.T))
    np.testing.assert_allclose(std**2, variance, atol=1e-9)


def test_slopes_are_estimated():
    X, truth = random_points(500), Modulated(Exponential(2.0, 0.2), (2.0, -1.0), (0.5, 0.5))
    y = simulate(truth, X, 1, 1, nugget=0.02)[:, 0]
    start = Modulated(Exponential(), (0.0, 0.0), (0.5, 0.5))
    found = Kriging(start, fit_parameters=True).fit(X, y)
    assert found.log_marginal_likelihood() > log_likelihood(truth, X, y, 0.02, "constant")
    for k, slope in enumerate(truth.slopes):
        low, high = found.parameter_intervals_[f"slopes[{k}]"]
        assert low - (high - low) < slope < high + (high - low)
    stationary = Kriging(Exponential(), fit_parameters=True).fit(X, y)
    assert found.log_marginal_likelihood() > stationary.log_marginal_likelihood() + 10


def test_the_factorization_without_iterations_is_for_stationary_fields():
    X = random_points(5000)
    assert is_direct("auto", X, Exponential()) and not is_direct("auto", X, COVS[0])
    assert not is_direct("auto", X, COVS[1]) and is_direct("direct", X, COVS[0])


@pytest.mark.parametrize("make, words", [
    (lambda: Modulated(Exponential() + Nugget(0.1), (1.0, 1.0)), "without nugget"),
    (lambda: Modulated(on_sphere(Exponential()), (1.0, 1.0)), "one in the plane or space"),
    (lambda: Modulated(Exponential(), 1.0), "slopes: expected finite numbers"),
    (lambda: Modulated(Exponential(), (np.nan, 1.0)), "slopes: expected finite numbers"),
    (lambda: Modulated(Exponential(), (1.0, 1.0), (0.0,)), "slopes: expected one a coordinate, 1 of them, got 2"),
    (lambda: Modulated(Exponential(1.0, (1, 2, 3)), (1.0, 1.0)), "3 of them, got 2"),
    (lambda: COVS[0](np.zeros((2, 3))), "expected 2 coordinates a point"),
], ids=range(7))  # fmt: skip
def test_what_is_not_understood_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
