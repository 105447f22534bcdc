"""Covariances that vanish beyond a distance: σ² t^m q(z) with z = r/l and t = 1 − z, zero for r ≥ l.

    Spherical   t² (1 + ½ z)                   =  1 − 3/2 z + ½ z³
    Cubic       t⁴ (1 + 4 z + 3 z² + 3/4 z³)   =  1 − 7 z² + 35/4 z³ − 7/2 z⁵ + 3/4 z⁷
    Wendland    t^(l+k) q_k(z),   l = ⌊d/2⌋ + k + 1,   2k times differentiable at r = 0

Positive definite up to 3, 3 and d dimensions. The coefficients of q are positive, so that no digits cancel.
References: Chilès & Delfiner (2012), Geostatistics, section 2.5.1; Wendland (1995), Piecewise polynomial, positive
definite and compactly supported radial functions of minimal degree.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.covariance.checks import checked_integer
from h2gpu.covariance.device import DeviceFunction, compact
from h2gpu.covariance.functions import Radial
from h2gpu.typing import Array, DTypeLike

MOST_ORDER = 3


class Compact(Radial):
    """σ² t^m q(z); length_scale l is where it becomes zero."""

    great_circle = False

    @property
    def factors(self) -> tuple[int, tuple[float, ...]]:
        """m, and the coefficients of q from the constant on."""
        raise NotImplementedError

    @property
    def kinks(self) -> tuple[tuple[float, ...], ...]:
        return (tuple(1 / l for l in np.atleast_1d(self.length_scale).tolist()),)

    def of_distances(self, r: Array) -> None:
        exponent, coefficients = self.factors
        xp = array_module(r)
        r *= 1 / self.first_length_scale
        z = xp.minimum(r, 1, out=r).copy()
        r[...] = coefficients[-1]
        for c in coefficients[-2::-1]:
            r *= z
            r += c
        r *= self.variance
        power = xp.subtract(1, z, out=z)
        while exponent:  # by its binary digits
            if exponent % 2:
                r *= power
            exponent //= 2
            if exponent:
                power *= power

    def of_device_distance(self, distance: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        return compact(self.variance, 1 / self.first_length_scale, *self.factors, distance, dtype)


class Spherical(Compact):
    """C(r) = σ² (1 − 3r/2l + r³/2l³) for r < l, else 0: the common model of mining. Up to 3 dimensions.

    variance, length_scale and rotation as for `Matern`. Raises ValueError for numbers that are not positive and
    finite, and at points of more than three coordinates. Source: Chilès & Delfiner (2012), section 2.5.1.

    >>> Spherical(variance=2.0, length_scale=4.0)([[0.0], [2.0], [4.0]])[0]
    array([2.   , 0.625, 0.   ])
    """

    most_dimensions = 3
    factors = 2, (1.0, 0.5)


class Cubic(Compact):
    """C(r) = σ² (1 − 7z² + 35/4 z³ − 7/2 z⁵ + 3/4 z⁷), z = r/l < 1, else 0: differentiable. Up to 3 dimensions.

    variance, length_scale and rotation as for `Matern`. Raises ValueError for numbers that are not positive and
    finite, and at points of more than three coordinates. Source: Chilès & Delfiner (2012), section 2.5.1.

    >>> import numpy as np
    >>> Cubic(length_scale=2.0).at_distance(np.array([0.0, 1.0, 2.0, 3.0])).round(3).tolist()
    [1.0, 0.24, 0.0, 0.0]
    """

    most_dimensions = 3
    factors = 4, (1.0, 4.0, 3.0, 0.75)


@dataclass(frozen=True, repr=False)
class Wendland(Compact):
    """Wendland's covariance of least degree: 2k times differentiable, positive definite up to so many dimensions.

    variance         squared units of the data
    length_scale     where it becomes zero, in units of the coordinates: one number or one a coordinate
    order            k, 0 to 3: fields have k derivatives
    most_dimensions  d: it is positive definite for points of at most so many coordinates

    Raises ValueError for other numbers, and at points of more coordinates. Source: Wendland (1995).

    >>> import numpy as np
    >>> Wendland(length_scale=2.0, order=1).at_distance(np.array([0.0, 1.0, 2.0])).round(4).tolist()
    [1.0, 0.1875, 0.0]
    """

    order: int = 1
    most_dimensions: int = 3

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "order", checked_integer("order", self.order, 0, MOST_ORDER))
        object.__setattr__(self, "most_dimensions", checked_integer("most_dimensions", self.most_dimensions, 1, 20))

    @property
    def factors(self) -> tuple[int, tuple[float, ...]]:
        k = self.order
        l = self.most_dimensions // 2 + k + 1
        coefficients = (
            (1.0,),
            (1.0, l + 1.0),
            (1.0, l + 2.0, (l * l + 4 * l + 3) / 3),
            (1.0, l + 3.0, (6 * l * l + 36 * l + 45) / 15, (l**3 + 9 * l * l + 23 * l + 15) / 15),
        )
        return l + k, coefficients[k]
