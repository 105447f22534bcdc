"""Fields whose variance changes from place to place.

    C'(x, y) = s(x) s(y) C(x, y),   s(x) = exp(bᵀ (x − c))

Positive definite as C is; s is smooth, so that interpolation and far blocks of low rank are those of C.
Reference: Rasmussen and Williams (2006), section 4.2.4 (vertical rescaling).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from h2gpu.arrays import array_module
from h2gpu.covariance.base import PLANE, Covariance
from h2gpu.covariance.device import DeviceFunction, isotropic, leading, modulated
from h2gpu.covariance.models.columns import OfColumns, checked_slopes, exponent
from h2gpu.texts import brief
from h2gpu.typing import Array, DTypeLike


@dataclass(frozen=True)
class Modulated(OfColumns, Covariance):
    """A covariance with a standard deviation that grows by the factor e along 1/b of a coordinate, or of a column.

    covariance   of the field where s = 1, without nugget
    slopes       b, one number a coordinate: changes of the logarithm of the standard deviation by unit
    center       c, one number a coordinate, where s = 1: best in the middle of the sites; by default 0
    columns      how many of the last coordinates are columns of a table, such as elevation: they change the standard
                 deviation, and tell no distance; by default as many as those of the covariance

    `Kriging` estimates the slopes with the other parameters. Raises ValueError for other numbers of numbers.
    Source: Rasmussen & Williams (2006), section 4.2.4, vertical rescaling.

    >>> from h2gpu.covariance import Exponential
    >>> cov = Modulated(Exponential(2.0, length_scale=10.0), slopes=(0.1, 0.0))
    >>> cov([[0.0, 0.0]], [[0.0, 0.0], [10.0, 0.0]]).round(4)  # 2 and 2 exp(−1) exp(1)
    array([[2., 2.]])
    """

    covariance: Covariance
    slopes: Sequence[float]
    center: Sequence[float] | None = None
    columns: int | None = None
    estimated = ("slopes",)
    stationary = False

    def __post_init__(self):
        inner = self.covariance
        plain = isinstance(inner, Covariance) and inner.embedding in (None, PLANE) and inner.variables is None
        if not plain or inner.nugget:
            raise ValueError(f"covariance: expected one in the plane or space, without nugget, got {brief(inner)}")
        checked_slopes(self, "slopes", inner.columns if self.columns is None else self.columns)

    @property
    def timed(self) -> bool:
        return self.covariance.timed

    @property
    def most_dimensions(self) -> int | None:
        return self.covariance.most_dimensions

    @property
    def kinks(self) -> tuple[tuple[float, ...], ...]:
        return self.covariance.kinks

    @property
    def variance_at_zero(self) -> float:
        return self.covariance.variance_at_zero

    def variances(self, x: Array) -> Array:
        return self.variance_at_zero * self.scale(x) ** 2

    def scale(self, x: Array) -> Array:
        """s of points x (..., d)."""
        return array_module(x).exp(exponent(self, x))

    def evaluate(self, x: Array, y: Array, out: Array) -> None:
        d = self.seen
        self.covariance.evaluate(x[..., :d], y[..., :d], out)
        out *= self.scale(x)
        out *= self.scale(y)

    def on_device(self, space: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        inner = self.covariance.on_device(isotropic(self.seen), dtype)
        return modulated(leading(inner, self.seen, len(self.slopes)), self.slopes, self.center)

    def scaled(self, factor: float) -> Covariance:
        return replace(self, covariance=self.covariance.scaled(factor))
