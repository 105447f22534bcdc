"""Theorems about every covariance function, their sums and products, and their units."""

import json

import numpy as np
import pytest
from covariances import COMPOSED, RADIAL, ROTATED, SMOOTHNESSES, SPHERES, random_lonlat, random_points
from reference import name_of

from h2gpu import covariance
from h2gpu.covariance import (
    Constant,
    Exponential,
    Gaussian,
    Matern,
    Nugget,
    Product,
    Sum,
    from_function,
    from_parameters,
)
from h2gpu.covariance.base import CHUNK

EPS = np.finfo(float).eps


# every covariance


@pytest.mark.parametrize("cov", RADIAL + COMPOSED + ROTATED + SPHERES, ids=repr)
def test_matrix_is_symmetric_positive_definite_with_the_variance_on_the_diagonal(cov):
    X = random_points() if cov.embedding == "plane" else random_lonlat()
    C = cov(X)
    np.testing.assert_array_equal(C, C.T)
    np.testing.assert_allclose(np.diag(C), cov.variance_at_zero + cov.nugget, rtol=1e-13)
    assert np.linalg.eigvalsh(C).min() > -50 * EPS * np.trace(C)
    np.testing.assert_allclose(cov(X, X) + cov.nugget * np.eye(len(X)), C, rtol=1e-13)


@pytest.mark.parametrize("cov", RADIAL + COMPOSED + ROTATED, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_broadcast_keep_the_float_type_and_do_not_depend_on_chunks(cov, dtype):
    x, y = random_points(3 * CHUNK // 64).astype(dtype)[:, None], random_points(64, seed=1).astype(dtype)[None]
    C = cov.values(x, y)
    assert C.shape == (len(x), 64) and C.dtype == dtype
    np.testing.assert_array_equal(C[-1:], cov.values(x[-1:], y))
    np.testing.assert_array_equal(cov.values(y, x[-5:]), C[-5:])  # f(x − y) = f(y − x), bit for bit
    assert cov.values(x[0, 0], y[0, 0]).shape == ()
    assert cov.values(x[:6].reshape(2, 3, 1, 2), y[0]).shape == (2, 3, 64)
    out = np.empty_like(C)
    assert cov.values(x, y, out=out) is out
    np.testing.assert_array_equal(out, C)
    assert cov(x[:0, 0], y[0]).shape == (0, 64)


@pytest.mark.parametrize("cov", RADIAL + COMPOSED + ROTATED + SPHERES, ids=repr)
def test_parameters_survive_json(cov):
    again = from_parameters(json.loads(json.dumps(cov.parameters())))
    assert again == cov and hash(again) == hash(cov) and repr(again) == repr(cov)


@pytest.mark.parametrize("cov", RADIAL + COMPOSED + ROTATED, ids=repr)
def test_repr_evaluates_to_the_value(cov):
    assert eval(repr(cov), vars(covariance)) == cov


@pytest.mark.parametrize("cov", RADIAL, ids=repr)
def test_values_are_the_function_of_the_scaled_distance(cov):
    X, Y = random_points(7), random_points(5, seed=1)
    scales = np.broadcast_to(cov.length_scale, 2)
    r = np.linalg.norm((X[:, None] - Y) / scales, axis=-1)
    parameters = cov.parameters() | {"length_scale": 1.0}
    np.testing.assert_allclose(cov(X, Y), from_parameters(parameters).at_distance(r), rtol=1e-12)


def test_far_from_the_origin_no_digit_is_lost():
    X = np.round(random_points(20) * 2**20) / 2**20
    for cov in RADIAL:
        np.testing.assert_array_equal(cov(X + 2.0**20), cov(X))


# algebra


def test_sums_and_products_are_those_of_the_matrices():
    f, g, h = Exponential(2.0, 0.3) + Nugget(0.5), Matern(1.5, 0.2, 1.1) + Nugget(0.25), Gaussian()
    X = random_points()
    np.testing.assert_allclose((f + g)(X), f(X) + g(X), rtol=1e-14)
    np.testing.assert_allclose((f * g)(X), f(X) * g(X), rtol=1e-14)
    np.testing.assert_allclose((f * g * h + g)(X), f(X) * g(X) * h(X) + g(X), rtol=1e-14)
    np.testing.assert_allclose((np.float64(3) * f * 2)(X), 6 * f(X), rtol=1e-14)
    np.testing.assert_allclose((3 * (f * g))(X), 3 * f(X) * g(X), rtol=1e-14)
    r = np.linspace(0, 1, 9)
    np.testing.assert_allclose((f * h).at_distance(r), f.at_distance(r) * h.at_distance(r), rtol=1e-14)
    np.testing.assert_allclose((f + h).at_distance(r), f.at_distance(r) + h.at_distance(r), rtol=1e-14)
    np.testing.assert_array_equal((f * h).at_distance(r.reshape(3, 3).T), (f * h).at_distance(r).reshape(3, 3).T)
    assert f.at_distance(0.5).shape == () and f.at_distance(np.float32([1, 2])).dtype == np.float32


def test_nested_terms_are_flattened():
    f, g, h = Exponential(), Gaussian(), Nugget(1.0)
    assert (f + (g + h)) == ((f + g) + h) == Sum((f, g, h))
    assert (f * (g * h)) == ((f * g) * h) == Product((f, g, h))
    assert repr((f + g) * h) == f"({f!r} + {g!r}) * {h!r}"


def test_nugget_separates_observations_even_at_one_place():
    X = np.zeros((3, 2))
    np.testing.assert_array_equal((Constant(2.0) + Nugget(1.0))(X), 2 + np.eye(3))
    np.testing.assert_array_equal(Nugget(1.0)(X, X), np.zeros((3, 3)))


# on the GPU, and in other units


@pytest.mark.gpu
@pytest.mark.parametrize("cov", RADIAL + COMPOSED + SPHERES + [Matern(1, 0.1, nu) for nu in SMOOTHNESSES], ids=repr)
def test_gpu_agrees_with_cpu(cov):
    cupy = pytest.importorskip("cupy")
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-5)):
        X = (random_points(300) if cov.embedding == "plane" else random_lonlat(300)).astype(dtype)
        C = cov(cupy.asarray(X))
        assert isinstance(C, cupy.ndarray) and C.dtype == dtype
        atol = tolerance * (cov.variance_at_zero + cov.nugget)
        np.testing.assert_allclose(C.get(), cov(X), rtol=0, atol=atol)


@pytest.mark.parametrize(
    "cov",
    [
        Exponential(2.0, (0.4, 0.1)),
        Matern(1.0, (3.0, 100.0), 1.5) + Gaussian(1.0, 5.0) + Nugget(0.1),
        Exponential(1.0, (7.0, 0.3)) * from_function(lambda x, y: 1 / (1 + ((x - y) ** 2).sum(-1))),
    ],
    ids=name_of,
)
def test_a_change_of_units_rounds_nothing(cov):
    x, y = np.random.default_rng(0).random((2, 50, 2)) * 10
    units = np.array(cov.units)
    assert (np.frexp(units)[0] == 0.5).all()
    there = cov.in_units(cov.units)
    np.testing.assert_array_equal(there.values(x / units, y / units), cov.values(x, y))
    assert there.nugget == cov.nugget


def test_isotropic_covariances_keep_their_units():
    assert (Exponential(1.0, 3.0) + Nugget(1.0)).units is None
    assert Exponential(1.0, (2.0, 2.0, 2.0)).units == (1.0, 1.0, 1.0)
