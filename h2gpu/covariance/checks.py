"""Checks at the doors: numbers and point sets that callers give."""

import math
from numbers import Real

from h2gpu.arrays import array_module


def checked(name, value, zero=False):
    """The value as a float, if it is a finite positive number (or zero, where allowed); else ValueError."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and (value > 0 or (zero and value == 0))):
        raise ValueError(f"{name}: expected a finite number {'≥' if zero else '>'} 0, got {value!r}")
    return float(value)


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
    if not bool(xp.isfinite(points).all()):
        raise ValueError("points: expected finite coordinates, got NaN or infinity; drop those points")
    return points
