"""The Matérn covariance: its definition, its table, its limits."""

import math

import numpy as np
import pytest
import scipy.special
from covariances import SMOOTHNESSES
from hypothesis import given, settings
from hypothesis import strategies as st

from h2gpu.covariance import Exponential, Gaussian, Matern, matern, matern_table

EPS = np.finfo(float).eps


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
