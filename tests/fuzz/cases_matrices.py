"""Covariance matrices of random problems against dense truth: the promise of rtol, symmetry, products.

Points in 1 to 6 dimensions: uniform, clustered, repeated, collinear, gridded, far from the origin, in large and small
units, on a sphere with antipodes and poles. Every covariance of the package; float32 and float64; odd arrays.
"""

import warnings

import numpy as np
from battery import back, battery, expect, given, one_line

import h2gpu
from h2gpu import covariance as c

MOST = 700  # points: the dense matrix is the oracle


def points(rng, n, dim):
    kind = rng.integers(8)
    x = rng.random((n, dim))
    if kind == 1:
        x = rng.random((5, dim))[rng.integers(5, size=n)] + 10.0 ** rng.uniform(-9, -1) * rng.standard_normal((n, dim))
    elif kind == 2:
        x = x[rng.integers(max(1, n // 3), size=n)]
    elif kind == 3:
        x = rng.random((n, 1)) * rng.standard_normal(dim)
    elif kind == 4:
        x = rng.integers(0, 12, (n, dim)).astype(float)
    elif kind == 5:
        x = 1000 * x + np.array([5e5, 4.5e6, 0, 0, 0, 0])[:dim]
    elif kind == 6:
        x[: n // 2] += 1e4
    elif kind == 7:
        x[:, 0] *= 10.0 ** rng.uniform(-6, 6)
    return x


def covariance(rng, extent, dim, nuggets=True):
    """A random covariance of a length near the extent, and what it is called."""
    length = extent * 10.0 ** rng.uniform(-1.5, 1) or 1.0
    if dim > 1 and rng.random() < 0.25:
        length = tuple(length * 10.0 ** rng.uniform(-0.5, 0.5, dim))
    common = {"variance": 10.0 ** rng.uniform(-3, 3), "length_scale": length}
    makers = [
        lambda: c.Exponential(**common),
        lambda: c.Gaussian(**common),
        lambda: c.Matern(**common, smoothness=float(rng.choice([0.5, 1.5, 2.5, 0.3, 0.8, 1.7, 4.2]))),
        lambda: c.RationalQuadratic(**common, alpha=10.0 ** rng.uniform(-1, 1)),
        lambda: c.PoweredExponential(**common, exponent=rng.uniform(0.5, 1.9)),
    ]
    if dim <= 3:
        makers += [lambda: c.Spherical(**common), lambda: c.Cubic(**common), lambda: c.Wendland(**common)]
    cov = makers[rng.integers(len(makers))]()
    if rng.random() < 0.2:
        cov = cov + makers[rng.integers(5)]()
    if rng.random() < 0.2:
        cov = cov * c.Exponential(length_scale=extent or 1.0)
    return cov + c.Nugget(10.0 ** rng.uniform(-6, 0)) if nuggets and rng.random() < 0.3 else cov


def odd_array(rng, x):
    """The same numbers in another layout."""
    kind = rng.integers(6)
    if kind == 1:
        return np.asfortranarray(x)
    if kind == 2:
        return np.repeat(x, 2, axis=0)[::2]
    if kind == 3:
        return x[::-1].copy()[::-1]
    if kind == 4:
        return x.astype(x.dtype.newbyteorder(">"))
    return x


def close(A, exact, rtol, what):
    error = np.linalg.norm(back(A.to_dense()).astype(float) - exact) / np.linalg.norm(exact)
    expect(error <= 1.5 * rtol, f"{what}: error {error:.3g} at rtol {rtol:.3g}")  # the check samples rows


@battery("numerics: covariance matrices")
def matrices(rng, folder):
    dim, n = int(rng.integers(1, 7)), int(2.0 ** rng.uniform(0, np.log2(MOST)))
    dtype = np.float32 if rng.random() < 0.25 else np.float64
    x = odd_array(rng, points(rng, n, dim).astype(dtype))
    y = points(rng, int(rng.integers(1, 300)), dim).astype(dtype) if rng.random() < 0.25 else None
    cov = covariance(rng, float(np.ptp(x, axis=0).max()), dim)
    rtol = 10.0 ** rng.uniform(-4, -1) if dtype == np.float32 else 10.0 ** rng.uniform(-8, -1)
    what = f"{n} points in {dim}D, {np.dtype(dtype)}, {cov!r}"
    exact = cov(x.astype(float)) if y is None else cov(x.astype(float), y.astype(float))
    if not np.linalg.norm(exact) > 0:
        return "zero"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            A = h2gpu.covariance_matrix(given(x), cov, rtol, col_points=given(y))
    except (ValueError, MemoryError) as error:
        one_line(error)
        return "refused"
    if np.linalg.norm(exact) < np.finfo(dtype).tiny:  # no entry is a normal number of this precision
        expect(not back(A.to_dense()).any(), f"{what}: entries below the range are not zero")
        return "zero"
    close(A, exact, rtol, what)
    v = rng.standard_normal((A.shape[1], 2)).astype(dtype)
    apart = np.linalg.norm(back(A @ given(v)) - exact @ v) / (np.linalg.norm(exact) * np.linalg.norm(v))
    expect(apart <= 2 * rtol + 1e-6 * (dtype == np.float32), f"{what}: products {apart:.3g} at {rtol:.3g}")
    return f"right in {np.dtype(dtype)}"


@battery("numerics: spheres")
def spheres(rng, folder):
    n = int(rng.integers(2, 500))
    lon, lat = rng.uniform(-180, 180, n), np.degrees(np.arcsin(rng.uniform(-1, 1, n)))
    half = n // 2
    kind = rng.integers(4)
    if kind == 0:
        lon[half : 2 * half], lat[half : 2 * half] = (lon[:half] + 360) % 360 - 180, -lat[:half]
    elif kind == 1:
        lat[:half] = 90 - 10.0 ** rng.uniform(-9, 1, half)
    elif kind == 2:
        lat[:] = rng.choice([90.0, -90.0, 0.0])
    x = np.stack([lon, lat], axis=1)
    distance = str(rng.choice(["great-circle", "chordal"]))
    length = 10.0 ** rng.uniform(2, 4.5)
    plain = c.Exponential(length_scale=length) if distance == "great-circle" else c.Matern(length_scale=length)
    rtol = 10.0 ** rng.uniform(-7, -1)
    cov = c.on_sphere(plain, distance=distance)
    exact = plain.at_distance(_distances(x, 6371.0, distance))
    np.testing.assert_allclose(back(cov(given(x))), exact, rtol=1e-11 * max(1, 6371 / length))
    close(h2gpu.covariance_matrix(given(x), cov, rtol), exact, rtol, f"{n} points, {distance}, length {length:.4g}")
    return f"right, {distance}"


def _distances(x, radius, kind):
    """Vincenty's formula (1975), from angles alone."""
    lon, lat = np.radians(x.astype(np.longdouble)).T
    apart = lon[:, None] - lon
    sines, cosines = np.sin(lat), np.cos(lat)
    across = np.hypot(cosines * np.sin(apart), cosines[:, None] * sines - sines[:, None] * cosines * np.cos(apart))
    angle = np.arctan2(across, sines[:, None] * sines + cosines[:, None] * cosines * np.cos(apart))
    return np.asarray(radius * angle if kind == "great-circle" else 2 * radius * np.sin(angle / 2), float)


@battery("numerics: ends of the range")
def ends(rng, folder):
    """Coordinates, lengths and variances of any power of ten: refused with the range, or within rtol."""
    dtype, n = (np.float32, np.float64)[rng.integers(2)], 300
    powers = rng.integers(-45, 38, 3) if dtype == np.float32 else rng.integers(-320, 308, 3)
    if rng.random() < 0.7:
        powers[1] = powers[0] + rng.integers(-2, 2)
    with np.errstate(all="ignore"):
        x = (rng.random((n, 2)) * 10.0 ** float(powers[0])).astype(dtype)
        variance = 10.0 ** float(powers[2] if rng.random() < 0.3 else rng.integers(-20, 20))
    try:
        cov = (c.Exponential, c.Gaussian, c.Matern, c.Spherical)[rng.integers(4)](variance, 10.0 ** float(powers[1]))
        A = h2gpu.covariance_matrix(given(x), cov, 1e-3)
    except (ValueError, OverflowError) as error:
        expect(type(error) is ValueError or "too large" in str(error), f"{type(error).__name__}: {error}")
        one_line(error)
        return "refused"
    exact = cov(x.astype(float))
    close(A, exact, 1e-3, f"{cov!r} at {x.max():.3g}, {np.dtype(dtype)}")
    return "right"
