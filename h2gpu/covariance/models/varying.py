"""Fields whose length scale changes from place to place.

    C'(x, y) = q^(d/2) C(r (q / (g(x) g(y)))^½),   g(x) = exp(bᵀ (x − c)),   q = 2 g(x) g(y) / (g(x)² + g(y)²)

r is the distance of d coordinates of a stationary C, whose lengths are g(x) times as large around x. C is a mixture of
Gaussians, and of a Gaussian this is the convolution of the white noise with kernels of the local length: positive
definite for any g. Away from x = y it is as smooth as C.

Reference: Paciorek & Schervish (2006), Spatial modelling using a new class of nonstationary covariance functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from h2gpu.arrays import array_module
from h2gpu.covariance.base import PLANE, Covariance
from h2gpu.covariance.device import DeviceFunction, isotropic, overlap, varying
from h2gpu.covariance.functions import Radial, squared_distances, squared_distances_of
from h2gpu.covariance.models.columns import OfColumns, checked_slopes, exponent
from h2gpu.texts import brief
from h2gpu.typing import Array, DTypeLike


@dataclass(frozen=True)
class VaryingLength(OfColumns, Covariance):
    """A covariance whose length scales grow by the factor e along 1/b of a coordinate, or of a column of a table.

    covariance     Exponential, Matern, Gaussian, PoweredExponential or RationalQuadratic: what it is where g = 1
    length_slopes  b, one number a coordinate: changes of the logarithm of the length scales by unit
    center         c, one number a coordinate, where g = 1: best in the middle of the sites; by default 0
    columns        how many of the last coordinates are columns of a table, such as elevation: they change the lengths,
                   and tell no distance

    `Kriging` estimates the slopes with the other parameters; `Modulated` of it has a variance that changes too. Raises
    ValueError for other covariances and other numbers of numbers.
    Source: Paciorek & Schervish (2006), on nonstationary covariances; Risser & Calder (2015), for columns.

    >>> from h2gpu.covariance import Exponential
    >>> cov = VaryingLength(Exponential(1.0, length_scale=10.0), length_slopes=(0.1, 0.0))
    >>> cov([[0.0, 0.0], [20.0, 0.0]], [[0.0, 1.0], [20.0, 1.0]]).round(3)  # lengths 10 and 74: rougher at the left
    array([[0.905, 0.182],
           [0.182, 0.987]])
    """

    covariance: Covariance
    length_slopes: Sequence[float]
    center: Sequence[float] | None = None
    columns: int = 0
    estimated = ("length_slopes",)
    stationary = False

    def __post_init__(self):
        inner = self.covariance
        if not isinstance(inner, Radial) or inner.embedding != PLANE or inner.most_dimensions is not None:
            raise ValueError(
                "covariance: expected one that is valid in any dimension, an Exponential, Matern, Gaussian, "
                f"PoweredExponential or RationalQuadratic, got {brief(inner)}"
            )
        checked_slopes(self, "length_slopes", self.columns)

    @property
    def slopes(self) -> Sequence[float]:
        """b."""
        return self.length_slopes

    @property
    def variance_at_zero(self) -> float:
        return self.covariance.variance_at_zero

    def lengths(self, x: Array) -> Array:
        """g of points x (..., d + columns)."""
        return array_module(x).exp(exponent(self, x))

    def evaluate(self, x: Array, y: Array, out: Array) -> None:
        d, inner = self.seen, self.covariance
        if inner.rotation is None:
            squared_distances(x[..., :d], y[..., :d], out, inner.stretches)
        else:
            squared_distances_of(inner.metric, x[..., :d], y[..., :d], out)
        g, h = self.lengths(x), self.lengths(y)
        mean = g * g + h * h
        mean *= 0.5
        out /= mean
        inner.of_squares(out)
        q = array_module(out).divide(g * h, mean, out=mean)
        out *= q if d == 2 else q ** (d / 2)

    def on_device(self, space: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        distance = varying(self.covariance.distance_on_device(isotropic(self.seen)), self.slopes, self.center)
        return overlap(self.covariance.of_device_distance(distance, dtype), self.slopes, self.seen)

    def scaled(self, factor: float) -> Covariance:
        return replace(self, covariance=self.covariance.scaled(factor))
