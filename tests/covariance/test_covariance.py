"""Theorems about covariance functions, and the conventions of other libraries."""

import json
import math

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import name_of

from h2gpu.covariance import (
    Constant,
    Exponential,
    Gaussian,
    Matern,
    Nugget,
    OnSphere,
    Product,
    Sum,
    from_function,
    from_gstools,
    from_parameters,
    from_sklearn,
    matern,
    matern_table,
    on_sphere,
)
from h2gpu.covariance.base import CHUNK

EPS = np.finfo(float).eps
SMOOTHNESSES = [0.1, 0.3, 0.5, 0.75, 0.9, 1.0, 1.5, 1.7, 2.0, 2.5, 3.5, 4.5, 5.5, 7.3, 12.0, 19.9, 20.0, 30.0]
RADIAL = [
    Exponential(2.0, 0.3),
    Exponential(1.0, (0.3, 0.1)),
    Gaussian(0.5, 0.2),
    *[Matern(1.5, 0.4, nu) for nu in (0.2, 0.5, 1.0, 1.5, 2.5, 3.3, 25.0)],
]
COMPOSED = [
    Exponential() + Nugget(0.1),
    2 * Gaussian() * Matern(1.0, (0.2, 0.3), 1.2) + Constant(0.3) + Nugget(0.2),
    (Exponential() + Nugget(0.5)) * (Matern() + Nugget(0.25)),
]
SPHERES = [
    on_sphere(Exponential(1.0, 2000.0)),
    on_sphere(Matern(2.0, 3000.0, 2.5) + Nugget(0.1), distance="chordal"),
    on_sphere(Exponential(1.0, 0.5) * Exponential(1.0, 0.7), radius=1.0) + Nugget(1.0),
]


def random_points(n=40, dim=2, seed=0):
    return np.random.default_rng(seed).random((n, dim))


def random_lonlat(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.uniform(-180, 180, n), np.rad2deg(np.arcsin(rng.uniform(-1, 1, n)))], axis=1)


# every covariance


@pytest.mark.parametrize("cov", RADIAL + COMPOSED + SPHERES, ids=repr)
def test_matrix_is_symmetric_positive_definite_with_the_variance_on_the_diagonal(cov):
    X = random_points() if cov.embedding == "plane" else random_lonlat()
    C = cov(X)
    np.testing.assert_array_equal(C, C.T)
    np.testing.assert_allclose(np.diag(C), cov.variance_at_zero + cov.nugget, rtol=1e-13)
    assert np.linalg.eigvalsh(C).min() > -50 * EPS * np.trace(C)
    np.testing.assert_allclose(cov(X, X) + cov.nugget * np.eye(len(X)), C, rtol=1e-13)


@pytest.mark.parametrize("cov", RADIAL + COMPOSED, ids=repr)
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


@pytest.mark.parametrize("cov", RADIAL + COMPOSED + SPHERES, ids=repr)
def test_parameters_survive_json(cov):
    again = from_parameters(json.loads(json.dumps(cov.parameters())))
    assert again == cov and hash(again) == hash(cov) and repr(again) == repr(cov)


@pytest.mark.parametrize("cov", RADIAL + COMPOSED, ids=repr)
def test_repr_evaluates_to_the_value(cov):
    assert eval(repr(cov)) == cov


@settings(deadline=None, max_examples=60)
@given(
    nu=st.floats(0.05, 60),
    length=st.floats(1e-3, 1e3),
    variance=st.floats(1e-3, 1e3),
    r=st.lists(st.floats(0, 1e6), min_size=2, max_size=20),
)
def test_matern_falls_from_the_variance_to_zero(nu, length, variance, r):
    cov, r = Matern(variance, length, nu), np.sort(np.array([0.0, *r, 1e12]))
    C = cov.at_distance(r)
    assert C[0] == pytest.approx(variance, rel=1e-13)
    assert C[-1] == 0 and (C >= 0).all()
    assert (np.diff(C) <= 2e-14 * variance).all()


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


# Matérn


def reference(z, nu):
    import mpmath

    with mpmath.workdps(40):
        z, nu = mpmath.mpf(float(z)), mpmath.mpf(nu)
        return float(2 ** (1 - nu) / mpmath.gamma(nu) * z**nu * mpmath.besselk(nu, z)) if z else 1.0


@pytest.mark.parametrize("nu", SMOOTHNESSES)
def test_matern_and_its_table_agree_with_the_definition(nu):
    special = [0, 5e-324, 1e-300, 1e-30, 0.999 * matern.SMALL, matern.SMALL, 1e-8, 745, 800, 1000]
    z = np.array(special + list(np.geomspace(2e-8, 900, 40)))
    exact = np.array([reference(t, nu) for t in z])
    rho = z.copy()
    matern.correlation(rho, nu)
    np.testing.assert_allclose(rho, exact, rtol=0, atol=3e-14)
    if nu < matern.DEBYE_SMOOTHNESS:
        table = matern.near_zero(z, nu, matern_table.correlation)
        np.testing.assert_allclose(table, exact, rtol=0, atol=3e-14)


def bessel(z, nu):
    """2^(1−ν)/Γ(ν) z^ν K_ν(z) by SciPy, for 1e-8 ≤ z ≤ 1000 and ν < 20: nothing overflows."""
    return scipy.special.kve(nu, z) * (2 / scipy.special.gamma(nu)) * (0.5 * z) ** nu * np.exp(-z)


@pytest.mark.parametrize("nu", [0.07, 0.6, 1.0, 3.21, 6.0, 15.5, 19.99, 0.2772707241861633, 1.2381166129866914])
def test_table_agrees_with_scipy_everywhere(nu):
    z = np.exp(np.random.default_rng(0).uniform(math.log(1e-9), math.log(1200), 20_000))
    table, direct = (matern.near_zero(z, nu, large) for large in (matern_table.correlation, bessel))
    np.testing.assert_allclose(table, direct, rtol=0, atol=3e-14)
    inside = (z > 1e-8) & (z < 300)
    np.testing.assert_allclose(table[inside], direct[inside], rtol=3e-13)  # the tail keeps its relative digits
    single = matern.near_zero(z.astype(np.float32), nu, matern_table.correlation)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, direct, rtol=0, atol=4e-7)


def test_smoothness_half_is_exponential_and_large_is_gaussian():
    r = np.linspace(0, 5, 50)
    np.testing.assert_allclose(Matern(2, 0.7, 0.5).at_distance(r), Exponential(2, 0.7).at_distance(r), rtol=1e-14)
    for nu in (1e3, 1e6, 1e12):  # the difference is O(1/ν)
        error = np.abs(Matern(1, 0.7, nu).at_distance(r) - Gaussian(1, 0.7).at_distance(r)).max()
        assert error <= 0.3 / nu + 4 * EPS


@pytest.mark.parametrize("nu", [0.9, 4.5, 20.0])
def test_matern_is_continuous_where_the_formula_changes(nu):
    r = np.geomspace(1e-12, 100, 200)
    below, above = (Matern(1, 1, nu * (1 + side)).at_distance(r) for side in (-1e-14, 1e-14))
    np.testing.assert_allclose(below, above, rtol=0, atol=1e-13)


def test_range_convention_of_geostatistics_packages():
    r = np.linspace(0, 3, 7)
    expected = [reference(t / 0.4, 1.3) for t in r]
    np.testing.assert_allclose(Matern.from_range(1.0, 0.4, 1.3).at_distance(r), expected, rtol=1e-12)
    assert Matern.from_range(1.0, (1.0, 2.0), 0.5).length_scale == (1.0, 2.0)


# the sphere


def test_great_circle_distance_is_haversine():
    X, R = np.concatenate([random_lonlat(), [[0, 90], [0, -90], [180, 0], [-180, 0]]]), 6371.0
    lon, lat = np.deg2rad(X).T
    h = np.sin((lat[:, None] - lat) / 2) ** 2
    h += np.cos(lat[:, None]) * np.cos(lat) * np.sin((lon[:, None] - lon) / 2) ** 2
    r = 2 * R * np.arcsin(np.sqrt(np.minimum(h, 1)))
    # near antipodes the distance comes from an arcsine near 1: to √ε of the radius
    np.testing.assert_allclose(on_sphere(Exponential(1, R), R)(X), np.exp(-r / R), rtol=1e-7)
    near = r < 3 * R
    np.testing.assert_allclose(on_sphere(Exponential(1, R), R)(X)[near], np.exp(-r / R)[near], rtol=1e-13)
    chord = 2 * R * np.sqrt(h)
    np.testing.assert_allclose(on_sphere(Gaussian(1, R), R, "chordal")(X), np.exp(-0.5 * (chord / R) ** 2), rtol=1e-12)


def test_smooth_great_circle_covariance_can_be_indefinite():
    X = random_lonlat(300)
    assert np.linalg.eigvalsh(on_sphere(Gaussian(1, 1.0), 1.0)(X)).min() < -1e-3
    assert np.linalg.eigvalsh(on_sphere(Gaussian(1, 1.0), 1.0, "chordal")(X)).min() > -1e-12


def test_sphere_values_are_finite_off_the_sphere():
    x = 3 * np.eye(3)[:, None]  # interpolation nodes lie beside the sphere; chords beyond 2R count as antipodal
    C = on_sphere(Exponential(1, 1.0), radius=1.0).values(x, -x[:, 0])
    np.testing.assert_allclose(np.diag(C), math.exp(-math.pi), rtol=1e-12)


# other libraries


def test_from_sklearn_gives_the_same_matrix():
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.gaussian_process.kernels import Matern as SkMatern

    X, Y = random_points(), random_points(9, seed=1)
    kernels = [RBF(0.3), RBF([0.3, 0.1]), 2.0 * RBF(0.3) + WhiteKernel(0.1), RBF(0.2) * WhiteKernel(0.5)]
    kernels += [SkMatern(0.3, nu=nu) for nu in (0.3, 0.5, 0.8, 1.5, 2.0, 2.5, 6.0, math.inf)]
    kernels += [SkMatern([0.3, 0.5], nu=1.5) * RBF(2.0) + ConstantKernel(0.7), ConstantKernel(2.0) * WhiteKernel(0.3)]
    kernels += [(RBF(0.2) + WhiteKernel(0.5)) * (SkMatern(1.0, nu=0.5) + WhiteKernel(0.25)) * 3.0]
    for kernel in kernels:
        cov = from_sklearn(kernel)
        np.testing.assert_allclose(cov(X), kernel(X), rtol=1e-10, atol=1e-12, err_msg=repr(kernel))
        np.testing.assert_allclose(cov(X, Y), kernel(X, Y), rtol=1e-10, atol=1e-12, err_msg=repr(kernel))
        assert from_parameters(cov.parameters()) == cov


@pytest.mark.parametrize("name", ["Exponential", "Gaussian", "Matern"])
@pytest.mark.parametrize("nu", [0.7, 1.5, 12.0, 25.0])
def test_from_gstools_gives_the_same_values(name, nu):
    gstools = pytest.importorskip("gstools")
    smoothness = {"nu": nu} if name == "Matern" else {}
    r = np.linspace(0.01, 4, 50)
    for options in ({}, {"rescale": 1.7}, {"nugget": 0.2}):
        model = getattr(gstools, name)(dim=2, var=2.0, len_scale=0.8, **smoothness, **options)
        cov = from_gstools(model)
        np.testing.assert_allclose(cov.at_distance(r), model.covariance(r), rtol=1e-9, atol=1e-14)
        assert cov.variance_at_zero + cov.nugget == pytest.approx(model.sill)
    model = getattr(gstools, name)(dim=2, var=2.0, len_scale=0.8, anis=0.5, **smoothness)
    X = random_points(20)
    separation = (X[:, None] - X).reshape(-1, 2)
    expected = model.cov_spatial(separation.T).reshape(20, 20)
    np.testing.assert_allclose(from_gstools(model)(X), expected, rtol=1e-9, atol=1e-14)


def test_from_gstools_geographic_model_is_chordal_with_its_radius():
    gstools = pytest.importorskip("gstools")
    model = gstools.Matern(latlon=True, var=2.0, len_scale=900.0, nu=1.2, geo_scale=gstools.KM_SCALE, nugget=0.1)
    cov = from_gstools(model)
    assert isinstance(cov, OnSphere) and cov.radius == gstools.KM_SCALE and cov.nugget == 0.1
    X = np.array([[0.0, 0.0], [10.0, 0.0], [170.0, 5.0], [20.0, 40.0]])
    angle = np.arccos(np.clip(cov.embed(X) @ cov.embed(X[:1]).T / cov.radius**2, -1, 1))[1:, 0]
    expected = model.cov_yadrenko(angle * gstools.KM_SCALE)
    np.testing.assert_allclose(cov(X[1:], X[:1])[:, 0], expected, rtol=1e-9)


def test_other_models_are_refused():
    from sklearn.gaussian_process.kernels import RBF, RationalQuadratic

    with pytest.raises(ValueError, match=r"expected scikit-learn's RBF, Matern.*got RationalQuadratic"):
        from_sklearn(RBF(1.0) + RationalQuadratic())
    gstools = pytest.importorskip("gstools")
    with pytest.raises(ValueError, match="expected GSTools' Exponential, Gaussian or Matern"):
        from_gstools(gstools.Spherical(dim=2))
    with pytest.raises(ValueError, match="rotate the coordinates"):
        from_gstools(gstools.Exponential(dim=2, len_scale=[1.0, 0.5], angles=0.3))
    with pytest.raises(ValueError, match="space and time"):
        from_gstools(gstools.Exponential(temporal=True, spatial_dim=2))
    with pytest.raises(ValueError, match="expected GSTools"):
        from_gstools(Exponential())


# a caller's function


def test_from_function_is_called_with_broadcasting_points():
    cov = from_function(lambda x, y: np.exp(-np.abs(x - y).sum(axis=-1)), dimension=3)
    X = random_points(12, 3)
    expected = np.exp(-np.abs(X[:, None] - X).sum(axis=-1))
    np.testing.assert_allclose((2 * cov + Nugget(0.5))(X), 2 * expected + 0.5 * np.eye(12))
    assert cov.variance_at_zero == 1 and (2 * cov).variance_at_zero == 2
    with pytest.raises(ValueError, match="cannot be written"):
        (cov + Nugget(1.0)).parameters()
    with pytest.raises(ValueError, match="expected 3 coordinates"):
        cov(random_points(4, 2))
    with pytest.raises(ValueError, match="expected values of shape"):
        from_function(lambda x, y: x - y)(X)
    with pytest.raises(ValueError, match="expected a function"):
        from_function(1.0)
    with pytest.raises(ValueError, match="positive integer"):
        from_function(np.minimum, dimension=0)


# bad input


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "1", None, True, 1j])
def test_numbers_are_checked(bad):
    makers = [
        lambda: Exponential(variance=bad),
        lambda: Gaussian(length_scale=bad),
        lambda: Exponential(length_scale=(1.0, bad)),
        lambda: Matern(smoothness=bad),
        lambda: Constant(bad),
        lambda: on_sphere(Exponential(), radius=bad),
        lambda: Matern.from_range(1.0, 1.0, bad),
    ]
    makers += [] if bad == 0 else [lambda: Nugget(bad)]
    makers += [] if not isinstance(bad, (int, float)) else [lambda: bad * Exponential(), lambda: Nugget(1.0) * bad]
    for make in makers:
        with pytest.raises(ValueError, match=r"expected a finite number"):
            make()


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([1.0, 2.0], r"expected shape \(n, dim\), got \(2,\); write points\[:, None\]"),
        (np.zeros((2, 2, 2)), r"expected shape \(n, dim\)"),
        (np.zeros((2, 0)), r"expected shape \(n, dim\)"),
        ([["a", "b"]], "expected real numbers"),
        ([[1j, 2]], "expected real numbers"),
        ([[np.nan, 1]], "expected finite"),
        ([[np.inf, 1]], "expected finite"),
        ([[1.0, 2.0, 3.0]], "expected 2 coordinates a point .* got 3"),
    ],
)
def test_points_are_checked(points, message):
    with pytest.raises(ValueError, match=message):
        Exponential(length_scale=(1.0, 2.0))(points)


def test_wrong_compositions_are_refused():
    sphere = on_sphere(Exponential())
    for wrong, message in [
        (lambda: Exponential() + sphere, "of one embedding"),
        (lambda: sphere * on_sphere(Exponential(), radius=1.0), "of one embedding"),
        (lambda: Exponential(1, (1, 2)) + Exponential(1, (1, 2, 3)), "of one dimension, got 2 and 3"),
        (lambda: on_sphere(sphere), "not yet on a sphere"),
        (lambda: on_sphere(Exponential(1, (1, 2))), "of the distance alone"),
        (lambda: on_sphere(from_function(np.minimum)), "of the distance alone"),
        (lambda: on_sphere(1.0), "expected a covariance such as"),
        (lambda: on_sphere(Exponential(), distance="euclid"), "expected one of great-circle, chordal"),
        (lambda: sphere([[0.0, 91.0]]), "latitudes within ±90"),
        (lambda: sphere([[0.0, 9.0, 1.0]]), "expected 2 coordinates"),
        (lambda: Exponential(1, (1, 2)).at_distance(1.0), "of the distance alone"),
        (lambda: Exponential(1, (1, 2)).values(np.zeros((4, 3)), np.zeros((4, 3))), "expected 2 coordinates"),
        (lambda: Exponential().values(np.zeros((4, 3)), np.zeros((4, 2))), "expected 3 coordinates"),
        (lambda: Exponential(length_scale=()), "got none"),
        (lambda: Sum(()), "at least one"),
        (lambda: Sum((1.0,)), "expected covariances"),
    ]:
        with pytest.raises(ValueError, match=message):
            wrong()
    with pytest.raises(TypeError):
        Exponential() + 1.0
    with pytest.raises(TypeError):
        Exponential() * "2"


def test_parameters_are_read_strictly():
    good = Exponential().parameters()
    deep = good
    for _ in range(40):
        deep = {"name": "Sum", "terms": [deep]}
    for bad, message in [
        ("Exponential", "expected a dictionary"),
        ({}, "expected a name of"),
        ({"name": "Covariance"}, "expected a name of"),
        ({"name": ["Exponential"]}, "expected a name of"),
        (good | {"smoothness": 1.0}, "expected the keys"),
        ({"name": "Exponential", "variance": 1.0}, "expected the keys"),
        (good | {"variance": "1.0"}, "variance: expected a finite number"),
        (good | {"length_scale": "12"}, "length_scale: expected a finite number"),
        (good | {"length_scale": {"1": 2}}, "length_scale: expected a finite number"),
        (good | {"length_scale": [[1.0]]}, "length_scale: expected a finite number"),
        ({"name": "Sum", "terms": good}, "list of terms"),
        ({"name": "Sum", "terms": []}, "at least one"),
        ({"name": "Product", "terms": [1.0]}, "expected a dictionary"),
        (deep, "nested at most"),
        (on_sphere(Exponential()).parameters() | {"covariance": 1}, "expected a dictionary"),
        (on_sphere(Exponential()).parameters() | {"distance": 1}, "expected one of great-circle"),
        (on_sphere(Exponential()).parameters() | {"distance": []}, "expected one of great-circle"),
    ]:
        with pytest.raises(ValueError, match=message):
            from_parameters(bad)


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
