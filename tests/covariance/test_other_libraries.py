"""Covariances of other libraries, by their conventions, and of a caller's function."""

import math

import numpy as np
import pytest
from covariances import random_points

from h2gpu.covariance import Exponential, Nugget, OnSphere, from_function, from_gstools, from_parameters, from_sklearn

# other libraries


def test_from_sklearn_gives_the_same_matrix():
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.gaussian_process.kernels import Matern as SkMatern
    from sklearn.gaussian_process.kernels import RationalQuadratic as SkRationalQuadratic

    X, Y = random_points(), random_points(9, seed=1)
    kernels = [RBF(0.3), RBF([0.3, 0.1]), 2.0 * RBF(0.3) + WhiteKernel(0.1), RBF(0.2) * WhiteKernel(0.5)]
    kernels += [SkMatern(0.3, nu=nu) for nu in (0.3, 0.5, 0.8, 1.5, 2.0, 2.5, 6.0, math.inf)]
    kernels += [SkMatern([0.3, 0.5], nu=1.5) * RBF(2.0) + ConstantKernel(0.7), ConstantKernel(2.0) * WhiteKernel(0.3)]
    kernels += [SkRationalQuadratic(0.3, 0.7) + WhiteKernel(0.1)]
    kernels += [(RBF(0.2) + WhiteKernel(0.5)) * (SkMatern(1.0, nu=0.5) + WhiteKernel(0.25)) * 3.0]
    for kernel in kernels:
        cov = from_sklearn(kernel)
        np.testing.assert_allclose(cov(X), kernel(X), rtol=1e-10, atol=1e-12, err_msg=repr(kernel))
        np.testing.assert_allclose(cov(X, Y), kernel(X, Y), rtol=1e-10, atol=1e-12, err_msg=repr(kernel))
        assert from_parameters(cov.parameters()) == cov


@pytest.mark.parametrize("name, nu", [
    *[("Matern", nu) for nu in (0.7, 1.5, 12.0, 25.0)],
    *[(name, None) for name in ("Exponential", "Gaussian", "Spherical", "Cubic", "Rational", "Stable")],
])  # fmt: skip
def test_from_gstools_gives_the_same_values(name, nu):
    gstools = pytest.importorskip("gstools")
    smoothness = {"nu": nu} if name == "Matern" else {"alpha": 1.3} if name in ("Rational", "Stable") else {}
    r = np.linspace(0.01, 4, 50)
    for options in ({}, {"rescale": 1.7}, {"nugget": 0.2}):
        model = getattr(gstools, name)(dim=2, var=2.0, len_scale=0.8, **smoothness, **options)
        cov = from_gstools(model)
        np.testing.assert_allclose(cov.at_distance(r), model.covariance(r), rtol=1e-9, atol=1e-14)
        assert cov.variance_at_zero + cov.nugget == pytest.approx(model.sill)
    for dim, anis, angles in ((2, 0.5, 0.0), (2, 0.5, 0.6), (3, [0.5, 0.3], [0.3, 0.5, 0.7])):
        model = getattr(gstools, name)(dim=dim, var=2.0, len_scale=0.8, anis=anis, angles=angles, **smoothness)
        X = random_points(20, dim)
        separation = (X[:, None] - X).reshape(-1, dim)
        expected = model.cov_spatial(separation.T).reshape(20, 20)
        np.testing.assert_allclose(from_gstools(model)(X), expected, rtol=1e-9, atol=1e-13)


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
    from sklearn.gaussian_process.kernels import RBF, ExpSineSquared

    with pytest.raises(ValueError, match=r"expected scikit-learn's RBF, Matern.*got ExpSineSquared"):
        from_sklearn(RBF(1.0) + ExpSineSquared())
    gstools = pytest.importorskip("gstools")
    with pytest.raises(ValueError, match="expected GSTools' Exponential, Spherical, Cubic, Gaussian, Matern"):
        from_gstools(gstools.Circular(dim=2))
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
