"""Further models: their formulas, the dimensions they are valid in, rotated axes, matrices across their kinks."""

import numpy as np
import pytest
from covariances import ROTATED, random_points

import h2gpu
from h2gpu.covariance import (
    Cubic,
    Exponential,
    Gaussian,
    Matern,
    Nugget,
    PoweredExponential,
    RationalQuadratic,
    Spherical,
    Wendland,
    from_function,
    from_parameters,
    on_sphere,
)
from h2gpu.covariance.models.rotation import angles, matrix
from h2gpu.covariance.sites import Sites

R = np.linspace(0, 2, 41)


@pytest.mark.parametrize("cov, formula", [
    (Spherical(2.0, 1.0), lambda z: 2 * np.where(z < 1, 1 - 1.5 * z + 0.5 * z**3, 0)),
    (Cubic(1.0, 1.0), lambda z: np.where(z < 1, 1 - 7 * z**2 + 8.75 * z**3 - 3.5 * z**5 + 0.75 * z**7, 0)),
    (Wendland(1.0, 1.0, 0, 1), lambda z: np.maximum(1 - z, 0)),
    (Wendland(1.0, 1.0, 0), lambda z: np.maximum(1 - z, 0) ** 2),
    (Wendland(1.0, 1.0, 1), lambda z: np.maximum(1 - z, 0) ** 4 * (4 * z + 1)),
    (Wendland(1.0, 1.0, 2), lambda z: np.maximum(1 - z, 0) ** 6 * (35 * z**2 + 18 * z + 3) / 3),
    (Wendland(1.0, 1.0, 3), lambda z: np.maximum(1 - z, 0) ** 8 * (32 * z**3 + 25 * z**2 + 8 * z + 1)),
    (Wendland(1.0, 1.0, 1, 5), lambda z: np.maximum(1 - z, 0) ** 5 * (5 * z + 1)),
    (PoweredExponential(3.0, 1.0, 0.7), lambda z: 3 * np.exp(-(z**0.7))),
    (RationalQuadratic(3.0, 1.0, 0.7), lambda z: 3 * (1 + z**2 / 1.4) ** -0.7),
], ids=lambda value: "formula" if callable(value) and not hasattr(value, "at_distance") else repr(value))  # fmt: skip
def test_values_are_the_published_formula(cov, formula):
    np.testing.assert_allclose(cov.at_distance(R), formula(R), atol=1e-13)
    assert cov.at_distance(0.0) == pytest.approx(cov.variance, rel=1e-14)


@pytest.mark.parametrize("order", range(4))
def test_no_digits_cancel_in_single_precision(order):
    """By powers of t alone the errors were 88 ε: their coefficients alternate."""
    z = np.linspace(0, 1, 1001)[:, None]
    for cov in (Spherical(), Cubic(), Wendland(order=order), Wendland(order=order, most_dimensions=1)):
        single = cov(z.astype(np.float32), np.zeros((1, 1), np.float32))
        assert single.dtype == np.float32
        exact = cov(z.astype(np.float32).astype(float), np.zeros((1, 1)))
        assert abs(single - exact).max() <= 8 * np.finfo(np.float32).eps


def test_ends_of_the_families():
    np.testing.assert_allclose(PoweredExponential(1.0, 0.5, 1.0).at_distance(R), Exponential(1.0, 0.5).at_distance(R))
    smooth = PoweredExponential(1.0, 0.5, 2.0).at_distance(R)
    np.testing.assert_allclose(smooth, Gaussian(1.0, 0.5 / 2**0.5).at_distance(R), rtol=1e-12)
    smooth = RationalQuadratic(1.0, 0.5, 1e8).at_distance(R)
    np.testing.assert_allclose(smooth, Gaussian(1.0, 0.5).at_distance(R), atol=1e-7)


@pytest.mark.parametrize("make, words", [
    (lambda: PoweredExponential(exponent=2.1), "exponent: expected a number up to 2"),
    (lambda: PoweredExponential(exponent=0.0), "exponent: expected a finite number > 0"),
    (lambda: RationalQuadratic(alpha=-1), "alpha: expected a finite number > 0"),
    (lambda: Wendland(order=4), "order: expected an integer from 0 to 3, got 4"),
    (lambda: Wendland(order=1.5), "order: expected an integer from 0 to 3, got 1.5"),
    (lambda: Wendland(most_dimensions=0), "most_dimensions: expected an integer from 1 to 20"),
    (lambda: Spherical()(np.zeros((2, 4))), "at most 3 coordinates, up to which Spherical.* is pos.* got 4"),
    (lambda: Cubic()(np.zeros((2, 4))), "at most 3 coordinates"),
    (lambda: Wendland(most_dimensions=2)(np.zeros((2, 3))), "at most 2 coordinates"),
    (lambda: (Exponential() + Spherical())(np.zeros((2, 4))), "at most 3 coordinates"),
    (lambda: on_sphere(Wendland(most_dimensions=2), distance="chordal"), "valid in 3 dimensions"),
    (lambda: on_sphere(RationalQuadratic()), "positive definite in the great-circle distance"),
    (lambda: on_sphere(PoweredExponential(1.0, 1.0, 1.2)), "positive definite in the great-circle distance"),
    (lambda: on_sphere(Spherical()), "positive definite in the great-circle distance"),
    (lambda: Exponential(rotation=0.3), "rotation: expected a length scale for each of 2 or 3 coordinates beside it"),
    (lambda: Exponential(1.0, (1, 2), rotation=(0.3, 1.0)), "rotation: expected 1 finite angle"),
    (lambda: Exponential(1.0, (1, 2), rotation=np.nan), "rotation: expected 1 finite angle"),
    (lambda: Exponential(1.0, (1, 2, 3), rotation=0.3), "rotation: expected 3 finite angle"),
], ids=range(18))  # fmt: skip
def test_what_is_no_covariance_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_the_spherical_one_is_indefinite_beyond_its_dimensions():
    """The limit is one of mathematics: 1 − z is a covariance on the line, not in the plane."""
    grid = np.stack(np.meshgrid(*[np.arange(12.0)] * 2), axis=-1).reshape(-1, 2)
    line = Wendland(1.0, 3.0, 0, 1)
    assert np.linalg.eigvalsh(from_function(line.values)(grid)).min() < -1e-3
    assert np.linalg.eigvalsh(Wendland(1.0, 3.0, 0, 2)(grid)).min() > 0


# rotated axes


def test_a_rotated_field_is_the_field_in_rotated_coordinates():
    X, a = random_points(30), 0.6
    turned = X @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])  # along the axes
    straight = Exponential(1.0, (0.5, 0.1))(turned)
    np.testing.assert_allclose(Exponential(1.0, (0.5, 0.1), rotation=a)(X), straight, rtol=1e-12)
    along = Exponential(1.0, (10.0, 0.1), rotation=a)([[0.0, 0.0]], [[np.cos(a), np.sin(a)]])
    assert along[0, 0] == pytest.approx(np.exp(-0.1))


@pytest.mark.parametrize("rotation", [(0.3, 0.5, 0.7), (-2.0, 1.2, 3.0), (0.4, np.pi / 2, 0.0), (0.0, 0.0, 0.0)])
def test_angles_in_space_are_found_again(rotation):
    Q = matrix(rotation, 3)
    np.testing.assert_allclose(Q @ Q.T, np.eye(3), atol=1e-15)
    found = angles(Q)
    np.testing.assert_allclose(np.eye(3) if found is None else matrix(found, 3), Q, atol=1e-12)


@pytest.mark.parametrize("cov", [*ROTATED, Exponential(1.0, (0.1, 0.5, 0.9), rotation=(0.3, 0.5, 0.7))], ids=repr)
def test_sites_lie_along_the_axes(cov):
    X = random_points(20, cov.dimension)
    sites = Sites.of(X, cov)
    np.testing.assert_allclose(sites.cov(sites.points), cov(X), rtol=1e-11)
    terms = getattr(sites.cov, "terms", [sites.cov])
    assert any(getattr(term, "rotation", 0) is None for term in terms)  # ordinary distances
    assert from_parameters(cov.parameters()) == cov


@pytest.mark.parametrize("cov, rtol", [
    (Spherical(1.0, 0.05), 1e-6), (Spherical(1.0, 0.3), 1e-7), (Cubic(1.0, 0.4), 1e-9), (Wendland(1.0, 0.4, 1), 1e-8),
    (Spherical(1.0, (0.6, 0.2), rotation=0.5), 1e-6), (Matern(1.0, (0.9, 0.1), 1.5, rotation=0.8), 1e-6),
], ids=lambda value: "formula" if callable(value) and not hasattr(value, "at_distance") else repr(value))  # fmt: skip
def test_matrices_are_accurate_across_kinks(cov, rtol):
    X = random_points(1600)
    C = h2gpu.covariance_matrix(X, cov, rtol)
    assert h2gpu.sampled_error(C, X, cov, rows=len(X)) <= rtol
    assert C.nbytes < 0.7 * 8 * len(X) ** 2


def test_parameters_without_rotation_are_those_of_earlier_files():
    assert Exponential().parameters() == {"name": "Exponential", "variance": 1.0, "length_scale": 1.0}
    assert (Spherical(1.0, (1.0, 2.0), rotation=0.3) + Nugget(1.0)).parameters()["terms"][0]["rotation"] == 0.3
