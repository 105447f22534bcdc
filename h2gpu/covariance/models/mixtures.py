"""Covariances between Exponential and Gaussian, and mixtures of Gaussians of all lengths.

    PoweredExponential   σ² exp(−(r/l)^p),  0 < p ≤ 2            RationalQuadratic   σ² (1 + r²/(2αl²))^(−α)

Positive definite in any dimension. Reference: Rasmussen and Williams (2006), equations 4.18 and 4.19.
"""

from dataclasses import dataclass

from h2gpu.arrays import array_module
from h2gpu.covariance.checks import checked
from h2gpu.covariance.device import DeviceFunction, powered_exponential, rational_quadratic
from h2gpu.covariance.functions import Radial
from h2gpu.typing import Array, DTypeLike


@dataclass(frozen=True, repr=False)
class PoweredExponential(Radial):
    """C(r) = σ² exp(−(r/l)^p), also called stable: p = 1 is Exponential, p = 2 Gaussian of length l/√2.

    exponent   p, above 0 and at most 2

    variance, length_scale and rotation as for `Matern`. Raises ValueError for numbers that are not positive and
    finite, and an exponent above 2. Source: Rasmussen & Williams (2006), equation 4.18.

    >>> PoweredExponential(1.0, 2.0, 1.5)([[0.0], [2.0]]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    exponent: float = 1.5
    estimated = ("variance", "length_scale", "rotation", "exponent")

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "exponent", checked("exponent", self.exponent))
        if self.exponent > 2:
            raise ValueError(f"exponent: expected a number up to 2, as no other is a covariance, got {self.exponent}")

    @property
    def great_circle(self) -> bool:
        return self.exponent <= 1

    def of_distances(self, r: Array) -> None:
        xp = array_module(r)
        r *= 1 / self.first_length_scale
        xp.power(r, self.exponent, out=r)
        xp.negative(r, out=r)
        xp.exp(r, out=r)
        r *= self.variance

    def of_device_distance(self, distance: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        return powered_exponential(self.variance, 1 / self.first_length_scale, self.exponent, distance, dtype)


@dataclass(frozen=True, repr=False)
class RationalQuadratic(Radial):
    """C(r) = σ² (1 + r²/(2αl²))^(−α): smooth fields of many lengths; α → ∞ is Gaussian. scikit-learn's convention.

    alpha   α > 0: the smaller, the longer the tail

    variance, length_scale and rotation as for `Matern`. Raises ValueError for numbers that are not positive and
    finite. Source: Rasmussen & Williams (2006), equation 4.19.

    >>> import numpy as np
    >>> RationalQuadratic(alpha=1.0).at_distance(np.array([0.0, 1.0])).round(3).tolist()
    [1.0, 0.667]
    """

    alpha: float = 1.0
    estimated = ("variance", "length_scale", "rotation", "alpha")
    great_circle = False

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "alpha", checked("alpha", self.alpha))

    def of_distances(self, r: Array) -> None:
        r *= r
        self.of_squares(r)

    def of_squares(self, s: Array) -> None:
        xp = array_module(s)
        s *= 0.5 / self.alpha / self.first_length_scale**2
        xp.log1p(s, out=s)
        s *= -self.alpha
        xp.exp(s, out=s)
        s *= self.variance

    def of_device_distance(self, distance: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        decay = 0.5 / self.alpha / self.first_length_scale**2
        return rational_quadratic(self.variance, decay, self.alpha, distance, dtype)
