"""Checks at the doors: numbers and point sets that callers give."""

import math
from numbers import Integral, Real

from h2gpu.arrays import array_module
from h2gpu.batched.copies import all_finite
from h2gpu.texts import brief

RANGES = {"float32": (1e-12, 1e18), "float64": (1e-135, 1e153)}  # of lengths and coordinates, by their precision:
# squares of distances stay in range, and those lost below it are of distances that are nothing against the lengths
LONGEST = 1e153  # length scales of any precision: their squares are numbers


def checked(name, value, zero=False):
    """The value as a float, if it is a finite positive number (or zero, where allowed); else ValueError."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and is_finite(value) and (value > 0 or (zero and value == 0))):
        raise ValueError(f"{name}: expected a finite number {'≥' if zero else '>'} 0, got {brief(value, 80)}")
    return float(value)


def checked_integer(name, value, least, most):
    """The value as an int, if it is an integer from least to most; else ValueError."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name}: expected an integer from {least} to {most}, got {brief(value, 80)}")
    return int(value)


def is_finite(value):
    """Whether a real number is finite as a float: an integer of 400 digits is not."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def float_type(array):
    """float32 for float32 arrays, float64 for all others."""
    return "float32" if getattr(array, "dtype", None) == "float32" else "float64"


def as_points(points):
    """Points as a float array (n, dim) on the device where they are. Raises ValueError."""
    xp = array_module(points)
    points = xp.asarray(points)
    if points.ndim != 2 or points.shape[1] == 0:
        advice = "; write points[:, None] for points on a line" if points.ndim == 1 else ""
        raise ValueError(f"points: expected shape (n, dim), got {points.shape}{advice}")
    if points.dtype.kind not in "fiu":
        raise ValueError(f"points: expected real numbers, got dtype {points.dtype}; convert to float64 first")
    points = points.astype(float_type(points), copy=False)
    if not all_finite(points):
        raise ValueError("points: expected finite coordinates, got NaN or infinity; drop those points")
    if points.size:
        check_range(points, "points")
    return points


def check_range(points, name, small=False):
    """ValueError unless the largest coordinate, where it is not 0, is in the range of the points' precision.

    small   whether it may be below the range: trees compare coordinates and square none
    """
    least, most = RANGES[float_type(points)]
    largest = max(float(points.max()), -float(points.min()))  # both are NaN if any is
    if largest == 0 or ((small or least <= largest) and largest < most):
        return
    raise ValueError(
        f"{name}: expected coordinates of {float_type(points)} from {least:g} to {most:g}, got {largest:g} at most; "
        "take other units"
    )


def check_lengths(cov, dtype):
    """ValueError unless the length scales of a covariance are in the range of points of that precision."""
    least, most = RANGES[dtype.name][0], LONGEST
    for length in _lengths(cov):
        if not least <= length <= most:
            raise ValueError(
                f"length_scale: expected a number from {least:g} to {most:g} for points of {dtype}, got {length:g}; "
                "take other units, for the coordinates too"
            )


def _lengths(cov):
    """All length scales of a covariance and of those that it is made of."""
    own = getattr(cov, "length_scale", ())
    return [*(own if isinstance(own, tuple) else (own,)), *(length for part in cov.parts for length in _lengths(part))]


def check_points(points, name):
    """ValueError unless points is a non-empty finite (n, dim) array of real numbers."""
    if getattr(points, "ndim", None) != 2 or points.shape[0] < 1 or points.shape[1] < 1:
        raise ValueError(
            f"{name}: expected shape (n, dim) with n ≥ 1 and dim ≥ 1, got {getattr(points, 'shape', type(points))}; "
            "give one row a point, one column a coordinate"
        )
    if points.dtype.kind != "f":
        raise ValueError(f"{name}: expected floating-point coordinates, got {points.dtype}; convert with astype(float)")
    if not all_finite(points):
        bad = ~array_module(points).isfinite(points).all(axis=1)
        raise ValueError(
            f"{name}: expected finite coordinates, got NaN or infinity in {int(bad.sum())} rows, first in row "
            f"{int(bad.argmax())}; drop those rows"
        )
    check_range(points, name, small=True)
