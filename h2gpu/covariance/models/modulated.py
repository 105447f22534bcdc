"""Fields whose variance changes from place to place.

    C'(x, y) = s(x) s(y) C(x, y),   s(x) = exp(bᵀ (x − c))

Positive definite as C is; s is smooth, so that interpolation and far blocks of low rank are those of C.
Reference: Rasmussen and Williams (2006), section 4.2.4 (vertical rescaling).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.covariance.base import PLANE, Covariance
from h2gpu.covariance.checks import is_finite
from h2gpu.covariance.device import DeviceFunction, modulated
from h2gpu.typing import Array, DTypeLike, Frame


@dataclass(frozen=True)
class Modulated(Covariance):
    """A covariance with a standard deviation that grows by the factor e along 1/b of a coordinate.

    covariance   of the field where s = 1, without nugget
    slopes       b, one number a coordinate: changes of the logarithm of the standard deviation by unit
    center       c, one number a coordinate, where s = 1: best in the middle of the sites; by default 0

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
    estimated = ("slopes",)
    stationary = False

    def __post_init__(self):
        inner = self.covariance
        plain = isinstance(inner, Covariance) and inner.embedding in (None, PLANE) and inner.variables is None
        if not plain or inner.nugget:
            raise ValueError(f"covariance: expected one in the plane or space, without nugget, got {inner!r}")
        slopes = _numbers("slopes", self.slopes)
        center = (0.0,) * len(slopes) if self.center is None else _numbers("center", self.center)
        if len(center) != len(slopes) or inner.dimension not in (None, len(slopes)):
            raise ValueError(
                f"slopes: expected one a coordinate, {inner.dimension or len(center)} of them, got {len(slopes)}"
            )
        object.__setattr__(self, "slopes", slopes)
        object.__setattr__(self, "center", center)

    @property
    def parts(self) -> tuple[Covariance, ...]:
        return (self.covariance,)

    @property
    def timed(self) -> bool:
        return self.covariance.timed

    @property
    def dimension(self) -> int:
        return len(self.slopes)

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
        xp = array_module(x)
        exponent = sum(b * (x[..., k] - c) for k, (b, c) in enumerate(zip(self.slopes, self.center)))
        return xp.exp(exponent)

    @property
    def units(self) -> Sequence[float] | None:
        return self.covariance.units

    def in_units(self, units: Sequence[float]) -> Covariance:
        inner, u = self.covariance.in_units(units), np.asarray(units)
        return Modulated(inner, tuple(np.multiply(self.slopes, u)), tuple(np.divide(self.center, u)))

    @property
    def frame(self) -> Frame | None:
        return self.covariance.frame

    def in_frame(self, frame: Frame) -> Covariance:
        F = np.asarray(frame)
        return Modulated(self.covariance.in_frame(frame), tuple(F @ self.slopes), tuple(F @ self.center))

    def evaluate(self, x: Array, y: Array, out: Array) -> None:
        self.covariance.evaluate(x, y, out)
        out *= self.scale(x)
        out *= self.scale(y)

    def on_device(self, space: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        return modulated(self.covariance.on_device(space, dtype), self.slopes, self.center)

    def scaled(self, factor: float) -> Covariance:
        return replace(self, covariance=self.covariance.scaled(factor))


def _numbers(name, values):
    """A tuple of finite floats; ValueError for others."""
    given = tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else ()
    if not given or not all(isinstance(v, (int, float, np.number)) and is_finite(v) for v in given):
        raise ValueError(f"{name}: expected finite numbers, one a coordinate, got {values!r:.80}")
    return tuple(map(float, given))
