"""Covariances in closed form, functions of the scaled distance r² = Σ_k ((x_k − y_k) / l_k)².

    Exponential  σ² exp(−r)          Gaussian  σ² exp(−r²/2)          Constant  σ²

Reference: Rasmussen and Williams (2006), equations 4.9 and 4.18.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
import scipy

from h2gpu.arrays import array_module
from h2gpu.covariance.base import OMITTED, Covariance
from h2gpu.covariance.checks import checked
from h2gpu.covariance.device import DeviceFunction, constant, gaussian, in_units, matern, rotated, stretched
from h2gpu.covariance.models.rotation import angles, checked_rotation, matrix
from h2gpu.typing import Array, DTypeLike, Frame


@dataclass(frozen=True, repr=False)
class Radial(Covariance):
    """σ² ρ(r): variance in squared units of the data, length_scale in units of the coordinates.

    length_scale: one number, or one a coordinate (geometric anisotropy along the axes). rotation: angles in radians
    that turn these axes: one in the plane, counterclockwise, three in space (yaw, pitch, roll).
    """

    variance: float = 1.0
    length_scale: float | tuple = 1.0
    rotation: float | tuple | None = field(default=None, kw_only=True)
    estimated = ("variance", "length_scale", "rotation")

    def __post_init__(self):
        object.__setattr__(self, "variance", checked("variance", self.variance))
        object.__setattr__(self, "length_scale", _length_scale(self.length_scale))
        if self.rotation is not None:
            object.__setattr__(self, "rotation", checked_rotation(self.rotation, self.dimension))

    def __repr__(self):
        given = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.name not in OMITTED]
        given += [] if self.rotation is None else [f"rotation={self.rotation!r}"]
        return f"{type(self).__name__}({', '.join(given)})"

    @property
    def variance_at_zero(self) -> float:
        return self.variance

    @property
    def dimension(self) -> int | None:
        return len(self.length_scale) if isinstance(self.length_scale, tuple) else None

    @property
    def first_length_scale(self) -> float:
        """The unit in which distances are measured; other coordinates are stretched to it."""
        return self.length_scale[0] if isinstance(self.length_scale, tuple) else self.length_scale

    def scaled(self, factor: float) -> Covariance:
        return replace(self, variance=checked("factor", factor) * self.variance)

    @property
    def isotropic(self) -> bool:
        return self.dimension in (None, 1)

    @property
    def units(self) -> Sequence[float] | None:
        if self.isotropic:
            return None
        if self.rotation is not None:
            return tuple(2.0 ** -np.round(np.log2(np.linalg.norm(self.metric, axis=0))))
        return tuple(2.0 ** np.round(np.log2(np.divide(self.length_scale, self.first_length_scale))))

    def in_units(self, units: Sequence[float]) -> Covariance:
        if self.rotation is not None:
            return InUnits(self, tuple(units))
        lengths = np.divide(self.length_scale, units)
        return replace(self, length_scale=tuple(lengths.tolist()))

    @property
    def frame(self) -> Frame | None:
        return None if self.rotation is None else tuple(map(tuple, matrix(self.rotation, self.dimension).T.tolist()))

    def in_frame(self, frame: Frame) -> Covariance:
        if self.isotropic:
            return self
        axes = np.eye(self.dimension) if self.rotation is None else matrix(self.rotation, self.dimension)
        return replace(self, rotation=angles(np.asarray(frame) @ axes))

    @property
    def metric(self) -> Array:
        """A (d, d) with ‖A (x − y)‖ the distance in units of the first axis's length scale."""
        return np.diag(np.divide(self.first_length_scale, self.length_scale)) @ np.asarray(self.frame)

    @property
    def stretches(self) -> list[float] | None:
        """Factors of the squares of the coordinate differences, the first 1; None for ordinary distances."""
        return self.dimension and [(self.first_length_scale / l) ** 2 for l in self.length_scale]

    def evaluate(self, x: Array, y: Array, out: Array) -> None:
        if self.rotation is None:
            squared_distances(x, y, out, self.stretches)
        else:
            squared_distances_of(self.metric, x, y, out)
        self.of_squares(out)

    def of_squares(self, s: Array) -> None:
        """Overwrite squared distances, in units of the first coordinate's, with the covariance."""
        array_module(s).sqrt(s, out=s)
        self.of_distances(s)

    def on_device(self, space: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        return self.of_device_distance(self.distance_on_device(space), dtype)

    def distance_on_device(self, space: DeviceFunction) -> DeviceFunction:
        """The distance in units of the first coordinate's; `space` itself where it is isotropic."""
        if self.isotropic:
            return space
        return stretched(self.stretches) if self.rotation is None else rotated(self.metric)

    def of_device_distance(self, distance: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        """The DeviceFunction of a distance in units of the first coordinate's; None where no kernel knows it."""
        return None


class Exponential(Radial):
    """C(r) = σ² exp(−r/l). Continuous, rough fields: Matérn of smoothness ½.

    variance, length_scale and rotation as for `Matern`. Raises ValueError for numbers that are not positive and
    finite. Source: Rasmussen & Williams (2006), equation 4.18 with γ = 1.

    >>> Exponential(variance=2.0, length_scale=3.0)([[0.0], [3.0]]).round(4)
    array([[2.    , 0.7358],
           [0.7358, 2.    ]])
    """

    def of_distances(self, r: Array) -> None:
        r *= -1 / self.first_length_scale
        array_module(r).exp(r, out=r)
        if self.variance != 1:
            r *= self.variance

    def of_device_distance(self, distance: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        return matern([self.variance], 1 / self.first_length_scale, distance, dtype)


class Gaussian(Radial):
    """C(r) = σ² exp(−r²/(2 l²)). Infinitely smooth fields; its matrices are nearly singular without a nugget.

    variance, length_scale and rotation as for `Matern`. Raises ValueError for numbers that are not positive and
    finite. Source: Rasmussen & Williams (2006), equation 4.9.

    >>> import numpy as np
    >>> Gaussian(length_scale=2.0).at_distance(np.array([0.0, 2.0])).round(3).tolist()
    [1.0, 0.607]
    """

    great_circle = False

    def of_distances(self, r: Array) -> None:
        r *= r
        self.of_squares(r)

    def of_squares(self, s: Array) -> None:
        s *= -0.5 / self.first_length_scale**2
        array_module(s).exp(s, out=s)
        s *= self.variance

    def of_device_distance(self, distance: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        return gaussian(self.variance, 0.5 / self.first_length_scale**2, distance, dtype)


@dataclass(frozen=True)
class Constant(Covariance):
    """C = σ²: one random level shared by all points. A matrix of rank one.

    Raises ValueError for a variance that is not positive and finite. Source: Rasmussen & Williams (2006), table 4.1.

    >>> import numpy as np
    >>> Constant(2.0)(np.zeros((2, 3)), np.ones((1, 3))).tolist()
    [[2.0], [2.0]]
    """

    variance: float = 1.0

    def __post_init__(self):
        object.__setattr__(self, "variance", checked("variance", self.variance))

    embedding = None
    estimated = ("variance",)

    @property
    def variance_at_zero(self) -> float:
        return self.variance

    isotropic = True

    def evaluate(self, x: Array, y: Array, out: Array) -> None:
        out[...] = self.variance

    def of_distances(self, r: Array) -> None:
        r[...] = self.variance

    def on_device(self, space: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        return constant(self.variance, space)

    def scaled(self, factor: float) -> Covariance:
        return Constant(checked("factor", factor) * self.variance)


def squared_distances(x, y, out, stretches=None):
    """out = Σ_k stretch_k (x_k − y_k)² for x (..., d) and y (..., d), with one temporary.

    Subtracting before scaling keeps the digits of points far from the origin.
    """
    xp = array_module(x, y)
    d = x.shape[-1]
    wanted = len(stretches) if stretches else d
    if (d, y.shape[-1]) != (wanted, wanted):
        raise ValueError(f"points: expected {wanted} coordinates a point, got {d} and {y.shape[-1]}")
    if d > 1 and not stretches and _all_pairs(x, y, out):
        # The same digits by one pass: 1.1 against 1.8 ns an entry in 2D.
        scipy.spatial.distance.cdist(x[:, 0], y[0], "sqeuclidean", out=out)
        return
    part = xp.empty_like(out) if d > 1 else None
    for k in range(d):
        term = part if k else out
        xp.subtract(x[..., k].copy(), y[..., k].copy(), out=term)  # contiguous copies: the subtraction is vectorized
        term *= term
        if stretches and stretches[k] != 1:
            term *= stretches[k]
        if k:
            out += part


def _all_pairs(x, y, out):
    """Whether these are the pairs of two sets in the memory and precision that SciPy works with."""
    arrays = all(isinstance(a, np.ndarray) and a.dtype == np.float64 for a in (x, y, out))
    return arrays and x.ndim == y.ndim == 3 and x.shape[1] == y.shape[0] == 1 and out.flags.c_contiguous


def squared_distances_of(A, x, y, out):
    """out = ‖A (x − y)‖² for x (..., d), y (..., d) and a matrix A (d, d)."""
    xp, d = array_module(x, y), len(A)
    if (x.shape[-1], y.shape[-1]) != (d, d):
        raise ValueError(f"points: expected {d} coordinates a point, got {x.shape[-1]} and {y.shape[-1]}")
    differences = [x[..., k] - y[..., k] for k in range(d)]
    out[...] = 0
    for row in A:
        part = differences[0] * float(row[0])
        for a, difference in zip(row[1:], differences[1:]):
            part += difference * float(a)
        out += xp.square(part, out=part)


@dataclass(frozen=True)
class InUnits(Covariance):
    """A covariance for coordinates divided by factors: what `in_units` answers where a class has no better way."""

    covariance: Covariance
    factors: tuple

    @property
    def parts(self):
        return (self.covariance,)

    @property
    def variance_at_zero(self):
        return self.covariance.variance_at_zero

    @property
    def dimension(self):
        return len(self.factors)

    @property
    def kinks(self):
        return tuple(tuple(np.multiply(kink, self.factors).tolist()) for kink in self.covariance.kinks)

    def evaluate(self, x, y, out):
        factors = array_module(x, y).asarray(self.factors, dtype=x.dtype)
        self.covariance.evaluate(x * factors, y * factors, out)

    def on_device(self, space, dtype):
        return in_units(self.covariance.on_device(space, dtype), self.factors)

    def scaled(self, factor):
        return InUnits(self.covariance.scaled(factor), self.factors)


def _length_scale(value):
    if hasattr(value, "ndim") and value.ndim == 0:
        value = value.item()
    if isinstance(value, Iterable) and not isinstance(value, (str, dict)):
        scales = tuple(checked("length_scale", getattr(l, "item", lambda l=l: l)()) for l in value)
        if not scales:
            raise ValueError("length_scale: expected one number, or one a coordinate, got none")
        return scales
    return checked("length_scale", value)
