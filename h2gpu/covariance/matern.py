"""Matérn covariance of any smoothness ν > 0, in scikit-learn's convention.

    C(r) = σ² ρ(z),   ρ(z) = 2^(1−ν)/Γ(ν) · z^ν K_ν(z),   z = √(2ν) r/l

Rasmussen and Williams (2006), equation 4.14. Four ways to ρ, each accurate to 1e-13 or better on its ground:

    ν = ½, 3/2, …, 9/2   polynomial · exp(−z)                                            anywhere
    z < 2^-27            1 − c z^2ν, the first terms of the power series                 anywhere
    ν ≥ 20               Debye's expansion, uniform in z (DLMF 10.41.4): never overflows   anywhere
    other ν              `matern_table`: 20 ns a value on the CPU, where scipy.special.kv takes 250
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Polynomial

from h2gpu.arrays import array_module
from h2gpu.covariance import matern_table
from h2gpu.covariance.checks import checked
from h2gpu.covariance.device import DeviceFunction, matern, matern_by_debye, matern_of_table
from h2gpu.covariance.functions import Radial
from h2gpu.typing import Array, DTypeLike

HIGHEST_CLOSED_FORM = 4.5
DEBYE_SMOOTHNESS = 20.0  # from here on 12 Debye terms reach 1e-15
DEBYE_TERMS = 12
SMALL = matern_table.SMALLEST  # below, z² is under the rounding error of 1


@dataclass(frozen=True, repr=False)
class Matern(Radial):
    """C(r) = σ² 2^(1−ν)/Γ(ν) z^ν K_ν(z), z = √(2ν) r/l; scikit-learn's length scale l.

    variance      squared units of the data
    length_scale  units of the coordinates, one number or one a coordinate
    smoothness    ν > 0: fields have ⌈ν⌉ − 1 derivatives; ½ is Exponential, ν → ∞ is Gaussian

    Length scales of others: z = r/β in GpGp, fields and ExaGeoStat (`Matern.from_range`), z = √ν r/l in GSTools
    (`from_gstools`). Raises ValueError for numbers that are not positive and finite.
    Source: Rasmussen & Williams (2006), equation 4.14.

    >>> import numpy as np
    >>> Matern(variance=2.0, length_scale=3.0, smoothness=0.5).at_distance(np.array([0.0, 3.0])).round(3).tolist()
    [2.0, 0.736]
    """

    smoothness: float = 1.5
    estimated = ("variance", "length_scale", "rotation", "smoothness")

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "smoothness", checked("smoothness", self.smoothness))

    @classmethod
    def from_range(cls, variance: float, range: float | Sequence[float], smoothness: float) -> "Matern":
        """Matérn with z = r/β, β the range: the convention of GpGp, fields and ExaGeoStat."""
        scale = math.sqrt(2 * checked("smoothness", smoothness))
        ranges = np.atleast_1d(np.asarray(range, dtype=float)) * scale
        return cls(variance, ranges if np.ndim(range) else ranges[0], smoothness)

    @property
    def great_circle(self) -> bool:
        return self.smoothness <= 0.5

    def of_distances(self, r: Array) -> None:
        r *= math.sqrt(2 * self.smoothness) / self.first_length_scale
        correlation(r, self.smoothness)
        r *= self.variance

    def of_device_distance(self, distance: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        nu, decay = self.smoothness, math.sqrt(2 * self.smoothness) / self.first_length_scale
        if has_closed_form(nu):
            ascending = reversed(closed_form_coefficients(nu))
            return matern([self.variance * c * decay**i for i, c in enumerate(ascending)], decay, distance, dtype)
        if nu >= DEBYE_SMOOTHNESS:
            return matern_by_debye(self.variance, decay / nu, nu, debye_polynomial(nu), distance, dtype)
        table = matern_table.Table(nu, dtype.name)
        return matern_of_table(self.variance, decay, nu, second_term(nu), table, distance, dtype)


def correlation(z, smoothness):
    """Overwrite an array z ≥ 0 with ρ(z)."""
    if has_closed_form(smoothness):
        closed_form(z, smoothness)
    elif smoothness >= DEBYE_SMOOTHNESS:
        z[...] = debye(z, smoothness)
    else:
        z[...] = near_zero(z, smoothness, matern_table.correlation)


def has_closed_form(smoothness):
    """Whether ν is ½, 3/2, … and small enough that the polynomial is short."""
    return smoothness <= HIGHEST_CLOSED_FORM and (smoothness - 0.5).is_integer()


def closed_form_coefficients(smoothness):
    """p!/(2p)! (p+i)!/(i! (p−i)!) 2^(p−i), the factors of z^p, …, 1 for p = ν − ½."""
    p, f = round(smoothness - 0.5), math.factorial
    return [f(p) * f(p + i) * 2 ** (p - i) / (f(2 * p) * f(i) * f(p - i)) for i in range(p + 1)]


def closed_form(z, smoothness):
    """Overwrite z by exp(−z) p!/(2p)! Σ_i (p+i)!/(i! (p−i)!) (2z)^(p−i), p = ν − ½ (equation 4.16)."""
    xp = array_module(z)
    xp.minimum(z, 800.0, out=z)  # exp(−800) = 0, and no power of it overflows
    decay = xp.negative(z)
    xp.exp(decay, out=decay)
    coefficients = closed_form_coefficients(smoothness)
    polynomial = xp.full_like(z, coefficients[0])
    for c in coefficients[1:]:
        polynomial *= z
        polynomial += c
    xp.multiply(polynomial, decay, out=z)


def near_zero(z, smoothness, large):
    """1 − Γ(1−ν)/Γ(1+ν) (z/2)^2ν + O(z²) where z < SMALL, large(z, ν) elsewhere."""
    xp = array_module(z)
    rho = large(xp.clip(z, SMALL, 1e3), smoothness)
    c = second_term(smoothness)
    return xp.where(z < SMALL, 1 - c * xp.minimum(z, SMALL) ** (2 * smoothness) if c else 1.0, rho)


def second_term(smoothness):
    """c of 1 − c z^2ν near zero; from ν = 0.9 on it is below 1e-14 where it is used, and 0."""
    if smoothness >= 0.9:
        return 0.0
    return math.gamma(1 - smoothness) / math.gamma(1 + smoothness) / 4**smoothness


def debye(z, smoothness):
    """ρ(z) for ν ≥ 20: exp(ν (log(1 + d/2) − d)) w^(−½) S(1/w), with w = √(1 + z²/ν²), d = w − 1.

    Debye's expansion of K_ν with Stirling's of Γ(ν) taken out by hand: ν^ν, e^ν and z^ν cancel, so any ν works.
    """
    xp = array_module(z)
    d = xp.minimum(z, 1e4 * smoothness)
    d *= 1 / smoothness
    d *= d
    w = xp.sqrt(d + 1)
    d /= w + 1  # without cancellation at small z
    p = xp.divide(1, w, out=w)
    T = xp.full_like(z, debye_polynomial(smoothness)[-1])
    for c in debye_polynomial(smoothness)[-2::-1]:
        T *= p
        T += c
    T *= d
    T *= p
    xp.subtract(1, T, out=T)  # S
    T *= xp.sqrt(p, out=p)
    logarithm = xp.log1p(xp.multiply(d, 0.5, out=p), out=p)
    logarithm -= d
    logarithm *= smoothness
    T *= xp.exp(logarithm, out=logarithm)
    return T


@functools.lru_cache(maxsize=256)
def debye_polynomial(smoothness):
    """Coefficients of T, 1 − (1 − p) T(p) = S(p) = Σ_k (−1)^k u_k(p) ν^(−k) divided by S(1), so that ρ(0) = 1."""
    S = sum((u * (-1 / smoothness) ** k for k, u in enumerate(debye_functions())), Polynomial([0.0]))
    return tuple((np.cumsum(S.coef[:0:-1])[::-1] / S.coef.sum()).tolist())


@functools.lru_cache(maxsize=1)
def debye_functions():
    """u_0 = 1, u_{k+1}(p) = ½ p² (1−p²) u_k' + ⅛ ∫_0^p (1 − 5t²) u_k dt (DLMF 10.41.9)."""
    u = [Polynomial([1.0])]
    for _ in range(DEBYE_TERMS - 1):
        derivative = Polynomial([0, 0, 0.5, 0, -0.5]) * u[-1].deriv()
        u.append(derivative + (Polynomial([1, 0, -5.0]) * u[-1]).integ() / 8)
    return u
