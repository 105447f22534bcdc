"""Several variables: published formulas, the bounds of validity, what is refused."""

import json
import math

import numpy as np
import pytest
from covariances import random_points
from scipy.special import kv

import h2gpu
from h2gpu import solvers
from h2gpu.covariance import (
    Coregionalization,
    Exponential,
    Gaussian,
    Matern,
    MultivariateMatern,
    Nugget,
    Spherical,
    from_parameters,
)
from h2gpu.covariance.models.variables import VariableNugget, from_partial, to_partial
from h2gpu.covariance.sites import Sites

B1, B2 = [[1.0, 0.7], [0.7, 2.0]], [[0.5, -0.3], [-0.3, 0.18]]
THREE = MultivariateMatern((1.0, 4.0, 0.5), 0.2, (0.5, 1.5, 1.0), [[1, 0.5, -0.3], [0.5, 1, 0.1], [-0.3, 0.1, 1]])
COVS = [
    Coregionalization([B1, B2], [Exponential(1.0, 0.2), Spherical(1.0, 0.6)]),
    Coregionalization([B1], [Matern(1.0, (0.4, 0.1), 1.5, rotation=0.5)]),
    MultivariateMatern((1.0, 4.0), 0.2, (0.5, 1.5), 0.8),
    MultivariateMatern((1.0, 4.0), 0.2, (1.2, 1.2), -1.0),
    THREE,
    Coregionalization([B1], [Gaussian(1.0, 0.1)]) + VariableNugget((0.1, 0.3)),
]


def sites(n=60, p=2, seed=0):
    """n places, every variable at each: (n p, 3)."""
    X = np.repeat(random_points(n, 2, seed), p, axis=0)
    return np.column_stack([X, np.tile(np.arange(p), n)])


def test_coregionalization_is_a_sum_of_kronecker_products():
    X = random_points(30)
    cov = COVS[0]
    expected = np.kron(Exponential(1.0, 0.2)(X), B1) + np.kron(Spherical(1.0, 0.6)(X), B2)
    np.testing.assert_allclose(cov(sites(30)), expected, rtol=1e-12)


def test_the_parsimonious_matern_is_the_published_formula():
    X, cov = random_points(30), MultivariateMatern((1.0, 4.0), 0.2, (0.5, 1.3), 0.8)
    z = np.linalg.norm(X[:, None] - X[None], axis=2) / 0.2
    C = cov(sites(30)).reshape(30, 2, 30, 2)
    off = ~np.eye(30, dtype=bool)
    for i, j, factor in ((0, 0, 1.0), (1, 1, 4.0), (0, 1, 1.6)):
        nu = ((0.5, 1.3)[i] + (0.5, 1.3)[j]) / 2
        M = factor * 2 ** (1 - nu) / math.gamma(nu) * z[off] ** nu * kv(nu, z[off])
        np.testing.assert_allclose(C[:, i, :, j][off], M, rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(np.diagonal(C[:, i, :, j]), factor)


@pytest.mark.parametrize("cov", COVS, ids=repr)
def test_matrices_are_positive_definite_and_sites_keep_them(cov):
    X = sites(120, cov.variables)
    C = cov(X)
    np.testing.assert_allclose(C, C.T, rtol=1e-14)
    assert np.linalg.eigvalsh(C).min() > -1e-10
    placed = Sites.of(X, cov)
    found = placed.cov.values(placed.points[:, None], placed.points[None])
    np.testing.assert_allclose(found, C, rtol=1e-10)
    np.testing.assert_allclose(placed.cov.variances(placed.points) + cov.nugget, np.diagonal(C), rtol=1e-13)
    np.testing.assert_allclose((3 * cov)(X), 3 * C, rtol=1e-12)


@pytest.mark.parametrize("cov", COVS[:5], ids=repr)
def test_files_hold_them(cov):
    assert from_parameters(json.loads(json.dumps(cov.parameters()))) == cov


@pytest.mark.parametrize("nu, d", [((0.5, 1.5), 2), ((0.3, 2.0), 1), ((1.0, 3.0), 3)])
def test_beyond_the_bound_the_spectra_are_indefinite(nu, d):
    """Theorem 3 of Gneiting, Kleiber & Schlather: f_12² ≤ f_11 f_22 at all frequencies, with equality at the limit."""
    most = MultivariateMatern((1, 1), 1.0, nu, 0.0, d).bounds[0, 1]
    f = lambda nu, w: math.gamma(nu + d / 2) / math.gamma(nu) * (1 + w**2) ** -(nu + d / 2)  # noqa: E731
    w, mean = np.linspace(0, 100, 1001), sum(nu) / 2
    ratio = f(nu[0], w) * f(nu[1], w) / f(mean, w) ** 2
    assert np.sqrt(ratio.min()) == pytest.approx(most, rel=1e-12)
    MultivariateMatern((1, 1), 1.0, nu, most * (1 - 1e-9), d)
    with pytest.raises(ValueError, match=f"correlation: expected at most .* in {d} dimensions"):
        MultivariateMatern((1, 1), 1.0, nu, most * 1.001, d)


@pytest.mark.parametrize("p", [2, 3, 5])
def test_partial_correlations_make_correlations_and_back(p):
    c = np.random.default_rng(p).uniform(-0.95, 0.95, p * (p - 1) // 2)
    R = from_partial(c, p)
    np.testing.assert_allclose(np.diagonal(R), 1, rtol=1e-14)
    assert np.linalg.eigvalsh(R).min() > 0
    np.testing.assert_allclose(to_partial(R), c, rtol=1e-9)
    singular = np.ones((p, p))
    np.testing.assert_allclose(from_partial(to_partial(singular), p), singular, atol=1e-12)


def test_no_polynomial_follows_an_index():
    X = sites(30)
    for refused in (h2gpu.build, h2gpu.covariance_matrix, solvers.skeletonize):
        with pytest.raises(ValueError, match=r"expected a covariance of one variable, got .*CoKriging"):
            refused(X[:, 1:] if refused is solvers.skeletonize else X, _on_a_line(refused))


def _on_a_line(refused):
    dim = 1 if refused is solvers.skeletonize else 2
    return MultivariateMatern((1.0, 1.0), 0.2, (0.5, 0.5), 0.3, dim) + Nugget(0.1)


@pytest.mark.parametrize("make, words", [
    (lambda: Coregionalization([B1], []), "a matrix for each of at least one covariance"),
    (lambda: Coregionalization([[[1, 2], [2, 1]]], [Exponential()]), "positive semidefinite matrix, .* eigenvalue -1"),
    (lambda: Coregionalization([[[1, 0.2], [0.1, 1]]], [Exponential()]), "matrices: expected a symmetric matrix"),
    (lambda: Coregionalization([B1, np.eye(3)], [Exponential()] * 2), r"matrices: expected finite numbers .* \(2, 2\)"),
    (lambda: Coregionalization([B1], [Exponential(2.0)]), "of variance 1, got"),
    (lambda: Coregionalization([B1], [Exponential() + Nugget(1.0)]), "in space without nugget"),
    (lambda: Coregionalization([B1], [Exponential(1.0, (1, 2, 3))], 2), "space_dimension: expected one number"),
    (lambda: Coregionalization([B1], [Spherical()], 4), "space_dimension: expected at most 3"),
    (lambda: MultivariateMatern((1.0,), 1.0, (1.0,), 0.0), "smoothness: expected one for each of p ≥ 2"),
    (lambda: MultivariateMatern((1, 1), 1.0, (1, 1), [[2, 0], [0, 2]]), "correlation: expected ones on the diagonal"),
    (lambda: MultivariateMatern((1, -1), 1.0, (1, 1), 0.0), "variance: expected a finite number > 0"),
    (lambda: COVS[2](np.array([[0.0, 0.0, 2.0]])), "as last coordinate the index of a variable, 0 to 1"),
    (lambda: COVS[2](np.array([[0.0, 0.0, 0.5]])), "as last coordinate the index of a variable, 0 to 1"),
    (lambda: COVS[2](np.zeros((1, 2))), "expected 3 coordinates a point"),
], ids=range(14))  # fmt: skip
def test_what_is_no_covariance_of_variables_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
