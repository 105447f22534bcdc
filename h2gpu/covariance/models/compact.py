"""Covariances that vanish beyond a distance: polynomials of t = 1 − r/l, zero for r ≥ l.

    Spherical   σ² (3/2 t² − ½ t³)  =  σ² (1 − 3/2 z + ½ z³),   z = r/l
    Cubic       σ² (1 − 7 z² + 35/4 z³ − 7/2 z⁵ + 3/4 z⁷)
    Wendland    σ² t^(m+k) p_k(z),   m = ⌊d/2⌋ + k + 1,   2k times differentiable at r = 0

Positive definite up to 3, 3 and d dimensions. By powers of t no digits cancel where the values are small.
References: Chilès & Delfiner (2012), Geostatistics, section 2.5.1; Wendland (1995), Piecewise polynomial, positive
definite and compactly supported radial functions of minimal degree.
"""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Polynomial

from h2gpu.arrays import array_module
from h2gpu.covariance.checks import checked_integer
from h2gpu.covariance.device import compact
from h2gpu.covariance.functions import Radial

MOST_ORDER = 3


class Compact(Radial):
    """σ² p(t), t = max(1 − r/l, 0); length_scale l is where it becomes zero."""

    great_circle = False

    @property
    def polynomial(self):
        """Coefficients of the powers of t, from t⁰ on."""
        raise NotImplementedError

    @property
    def kinks(self):
        return (tuple(1 / l for l in np.atleast_1d(self.length_scale).tolist()),)

    def of_distances(self, r):
        xp = array_module(r)
        r *= -1 / self.first_length_scale
        r += 1
        xp.maximum(r, 0, out=r)
        t = r.copy()
        r[...] = self.polynomial[-1]
        for c in self.polynomial[-2::-1]:
            r *= t
            r += c
        r *= self.variance

    def of_device_distance(self, distance, dtype):
        return compact(self.variance, 1 / self.first_length_scale, self.polynomial, distance, dtype)


class Spherical(Compact):
    """C(r) = σ² (1 − 3r/2l + r³/2l³) for r < l, else 0: the common model of mining. Up to 3 dimensions.

    >>> Spherical(variance=2.0, length_scale=4.0)([[0.0], [2.0], [4.0]])[0]
    array([2.   , 0.625, 0.   ])
    """

    most_dimensions = 3
    polynomial = 0.0, 0.0, 1.5, -0.5


class Cubic(Compact):
    """C(r) = σ² (1 − 7z² + 35/4 z³ − 7/2 z⁵ + 3/4 z⁷), z = r/l < 1, else 0: differentiable. Up to 3 dimensions."""

    most_dimensions = 3

    @property
    def polynomial(self):
        return _in_t((1, 0, -7, 8.75, 0, -3.5, 0, 0.75))


@dataclass(frozen=True, repr=False)
class Wendland(Compact):
    """Wendland's covariance of least degree: 2k times differentiable, positive definite up to so many dimensions.

    variance         squared units of the data
    length_scale     where it becomes zero, in units of the coordinates: one number or one a coordinate
    order            k, 0 to 3: fields have k derivatives
    most_dimensions  d: it is positive definite for points of at most so many coordinates

    Raises ValueError for other numbers, and at points of more coordinates.
    """

    order: int = 1
    most_dimensions: int = 3

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "order", checked_integer("order", self.order, 0, MOST_ORDER))
        object.__setattr__(self, "most_dimensions", checked_integer("most_dimensions", self.most_dimensions, 1, 20))

    @property
    def polynomial(self):
        return _wendland(self.order, self.most_dimensions)


@functools.lru_cache(maxsize=64)
def _wendland(k, d):
    """Coefficients of the powers of t."""
    l = d // 2 + k + 1
    factor = (
        (1,),
        (1, l + 1),
        (1, l + 2, (l * l + 4 * l + 3) / 3),
        (1, l + 3, (6 * l * l + 36 * l + 45) / 15, (l**3 + 9 * l * l + 23 * l + 15) / 15),
    )[k]
    return (0.0,) * (l + k) + _in_t(factor)


@functools.lru_cache(maxsize=64)
def _in_t(powers_of_z):
    """Coefficients of the powers of t = 1 − z of a polynomial in z."""
    return tuple(Polynomial(powers_of_z)(Polynomial([1.0, -1.0])).coef.tolist())
