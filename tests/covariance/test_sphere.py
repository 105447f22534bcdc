"""Covariances on the sphere: great-circle and chordal distances."""

import math

import numpy as np
import pytest
from covariances import random_lonlat

from h2gpu.covariance import Exponential, Gaussian, Matern, from_distance, on_sphere


def test_great_circle_distance_is_haversine():
    X, R = np.concatenate([random_lonlat(), [[0, 90], [0, -90], [180, 0], [-180, 0]]]), 6371.0
    lon, lat = np.deg2rad(X).T
    h = np.sin((lat[:, None] - lat) / 2) ** 2
    h += np.cos(lat[:, None]) * np.cos(lat) * np.sin((lon[:, None] - lon) / 2) ** 2
    r = 2 * R * np.arcsin(np.sqrt(np.minimum(h, 1)))
    np.testing.assert_allclose(on_sphere(Exponential(1, R), R)(X), np.exp(-r / R), rtol=1e-7)  # haversines end near 1
    near = r < 3 * R
    np.testing.assert_allclose(on_sphere(Exponential(1, R), R)(X)[near], np.exp(-r / R)[near], rtol=1e-13)
    chord = 2 * R * np.sqrt(h)
    np.testing.assert_allclose(on_sphere(Gaussian(1, R), R, "chordal")(X), np.exp(-0.5 * (chord / R) ** 2), rtol=1e-12)


@pytest.mark.parametrize("apart", [0, 1e-13, 1e-9, 1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("latitude", [0.0, 37.0, 90.0])
def test_distances_near_antipodes_poles_and_nothing_have_all_their_digits(latitude, apart):
    """Along a meridian through the pole, where the distance is the difference of latitudes."""
    x, R = np.array([[20.0, latitude]]), 6371.0
    cov = on_sphere(Exponential(1, R), R)
    lower = latitude - apart
    np.testing.assert_allclose(cov(x, [[20.0, lower]]), np.exp(-np.deg2rad(latitude - lower)), rtol=4e-15)
    opposite = -latitude + apart  # on the other side: 180 degrees, less what is told
    np.testing.assert_allclose(
        cov(x, [[-160.0, opposite]]), np.exp(-np.deg2rad(180 - (latitude + opposite))), rtol=4e-15
    )


def test_smooth_great_circle_covariance_can_be_indefinite():
    X = random_lonlat(300)
    for cov in (Gaussian(1, 1.0), Matern(1, 1.0, 0.6), Exponential() + 0.1 * Matern(1, 1.0, 2.5)):
        with pytest.raises(ValueError, match=r"smoothness ≤ 0.5, got .* take distance="):
            on_sphere(cov, 1.0)
    trusted = on_sphere(from_distance(Gaussian(1, 1.0).at_distance), 1.0)
    assert np.linalg.eigvalsh(trusted(X)).min() < -1e-3
    assert np.linalg.eigvalsh(on_sphere(Gaussian(1, 1.0), 1.0, "chordal")(X)).min() > -1e-12


def test_sphere_values_are_finite_off_the_sphere():
    x = 3 * np.eye(3)[:, None]  # interpolation nodes lie beside the sphere
    C = on_sphere(Exponential(1, 1.0), radius=1.0).values(x, -x[:, 0])
    np.testing.assert_allclose(np.diag(C), math.exp(-math.pi), rtol=1e-12)
