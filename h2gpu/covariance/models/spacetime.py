"""Covariances in space and time, of points (x_1 … x_d, t): the last coordinate is time.

    SpaceTime   C_S(h) C_T(u)                                     separable
    Gneiting    ψ(u)^(−d/2) C_S(h / ψ(u)^(β/2)),   ψ(u) = 1 + (|u|/τ)^(2α)       0 < α ≤ 1, 0 ≤ β ≤ 1

β is the interaction of space and time: with β = 0 Gneiting's is separable too.

Reference: Gneiting (2002), Nonseparable, stationary covariance functions for space–time data, theorem 2, equation 14.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.covariance.base import PLANE, Covariance
from h2gpu.covariance.checks import checked
from h2gpu.covariance.device import DeviceFunction, isotropic, joined, powers_of_time, within_time
from h2gpu.covariance.functions import InUnits, Radial, squared_distances, squared_distances_of
from h2gpu.covariance.sphere import Sphere
from h2gpu.covariance.user import InFrame
from h2gpu.texts import brief
from h2gpu.typing import Array, DTypeLike, Frame

PLANAR = 2  # coordinates in space where nothing tells their number
POWERS = 2.0 ** np.arange(-400, 401)  # distances at which a covariance is looked at


@dataclass(frozen=True)
class SphereAndTime:
    """The embedding of (lon, lat, t) into ℝ³ × ℝ."""

    sphere: Sphere
    coordinates = 4

    def embed(self, points):
        xp = array_module(points)
        return xp.concatenate([self.sphere.embed(points[:, :2]), points[:, 2:]], axis=1)


class InTime(Covariance):
    """What covariances of space and time share; a subclass has `space` and `space_dimension`."""

    timed = True

    @property
    def dimension(self) -> int | None:
        return self.space_dimension + 1

    @property
    def parts(self) -> tuple[Covariance, ...]:
        return (self.space,)

    @property
    def embedding(self) -> "Sphere | str | None":
        inner = self.space.embedding
        return PLANE if inner in (None, PLANE) else SphereAndTime(inner)

    @property
    def nugget(self) -> float:
        return 0.0

    @property
    def frame(self) -> Frame | None:
        inner = self.space.frame
        return None if inner is None else tuple(map(tuple, _beside(inner).tolist()))

    def in_frame(self, frame: Frame) -> Covariance:
        F = np.asarray(frame)
        if F.shape == (self.dimension,) * 2 and np.array_equal(F, _beside(F[:-1, :-1])):
            return replace(self, space=self.space.in_frame(tuple(map(tuple, F[:-1, :-1].tolist()))))
        return InFrame(self, frame)

    @property
    def units(self) -> Sequence[float] | None:
        near, soon = halved(self.space, self._embedded), self.half_time
        if not (np.isfinite(near) and np.isfinite(soon)):
            return None
        inner = self.space.units
        return (*((1.0,) * self._embedded if inner is None else inner), soon / near)

    @property
    def _embedded(self):
        """Coordinates in which space is evaluated."""
        return self.space_dimension if self.embedding is PLANE else 3

    def scaled(self, factor: float) -> Covariance:
        return replace(self, space=self.space.scaled(factor))

    def _check(self, kind, advice):
        """ValueError for spaces that are none; space_dimension is settled."""
        name, space, given = type(self).__name__, self.space, self.space_dimension
        if not isinstance(space, kind) or space.nugget or space.timed:
            raise ValueError(f"{name}: expected for space {advice}, got {brief(space)}")
        if given is not None and not (isinstance(given, Integral) and 1 <= given <= 20):
            raise ValueError(f"space_dimension: expected an integer from 1 to 20, got {brief(given, 80)}")
        if None not in (given, space.dimension) and given != space.dimension:
            raise ValueError(f"space_dimension: expected {space.dimension}, that of {space!r}, got {given}")
        found = int(space.dimension or given or PLANAR)
        if space.most_dimensions is not None and found > space.most_dimensions:
            raise ValueError(
                f"space: expected at most {space.most_dimensions} coordinates, up to which {space!r} is positive "
                f"definite, got {found}"
            )
        object.__setattr__(self, "space_dimension", found)


@dataclass(frozen=True)
class SpaceTime(InTime):
    """C(h, u) = C_S(h) C_T(u) of points (x, t): each instant is a field like the others, each place a series.

    space            covariance of all coordinates but the last, without nugget; on_sphere(…) for (lon, lat, t)
    time             covariance of the last coordinate, without nugget; give it the variance 1
    space_dimension  number of coordinates in space, where `space` does not tell it: by default 2

    Its parameters to estimate are those of both, but for the variance of time. Raises ValueError for others.
    Source: Rasmussen & Williams (2006), section 4.2.4, products; Gneiting (2002) on separable ones.

    >>> from h2gpu.covariance import Exponential
    >>> cov = SpaceTime(Exponential(2.0, length_scale=10.0), Exponential(length_scale=3.0))
    >>> cov([[0.0, 0.0, 0.0]], [[10.0, 0.0, 0.0], [0.0, 0.0, 3.0], [10.0, 0.0, 3.0]]).round(4)
    array([[0.7358, 0.7358, 0.2707]])
    """

    space: Covariance
    time: Covariance
    space_dimension: int | None = None

    def __post_init__(self):
        self._check(Covariance, "a covariance without nugget (add it to the whole)")
        time = self.time
        fits = isinstance(time, Covariance) and time.embedding in (None, PLANE) and time.dimension in (None, 1)
        if not fits or time.nugget or time.timed:
            raise ValueError(
                f"SpaceTime: expected for time a covariance of one coordinate, no nugget, got {brief(time)}"
            )

    @property
    def parts(self) -> tuple[Covariance, ...]:
        return self.space, self.time

    @property
    def variance_at_zero(self) -> float:
        return self.space.variance_at_zero * self.time.variance_at_zero

    @property
    def half_time(self) -> float:
        """About the time after which the covariance is halved."""
        return halved(self.time, 1)

    def in_units(self, units: Sequence[float]) -> Covariance:
        if len(units) != self._embedded + 1:
            return InUnits(self, tuple(units))
        space = self.space if set(units[:-1]) == {1.0} else self.space.in_units(units[:-1])
        return replace(self, space=space, time=self.time if units[-1] == 1.0 else self.time.in_units(units[-1:]))

    @property
    def kinks(self) -> tuple[tuple[float, ...], ...]:
        d = self._embedded
        of_space = tuple((*np.broadcast_to(kink, d).tolist(), 0.0) for kink in self.space.kinks)
        of_time = tuple((*[0.0] * d, *np.broadcast_to(kink, 1).tolist()) for kink in self.time.kinks)
        return of_space + of_time

    def evaluate(self, x: Array, y: Array, out: Array) -> None:
        self.space.evaluate(x[..., :-1], y[..., :-1], out)
        part = array_module(out).empty_like(out)
        self.time.evaluate(x[..., -1:], y[..., -1:], part)
        out *= part

    def on_device(self, space: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        return joined(self.space.on_device(isotropic(self._embedded), dtype), self.time.on_device(isotropic(1), dtype))


@dataclass(frozen=True)
class Gneiting(InTime):
    """Gneiting's covariance of points (x, t): fields in space whose length grows with the lag in time.

    space            Exponential, Matern, Gaussian, PoweredExponential or RationalQuadratic of all coordinates but the
                     last: C(h, 0)
    time_scale       τ, in the unit of time
    time_exponent    α, above 0 and at most 1: C(0, u) = σ² ψ(u)^(−d/2) falls as 1 − (d/2)|u/τ|^(2α)
    interaction      β, from 0 (separable) to 1
    space_dimension  d, where `space` does not tell it: by default 2

    Raises ValueError for numbers out of range, and for a space that is no mixture of Gaussians.
    Source: Gneiting (2002), theorem 2 and equation 14.

    >>> from h2gpu.covariance import Exponential
    >>> cov = Gneiting(Exponential(2.0, length_scale=10.0), time_scale=3.0, time_exponent=1.0, interaction=1.0)
    >>> cov([[0.0, 0.0, 0.0]], [[10.0, 0.0, 0.0], [0.0, 0.0, 3.0]]).round(4)
    array([[0.7358, 1.    ]])
    """

    space: Covariance
    time_scale: float = 1.0
    time_exponent: float = 0.5
    interaction: float = 0.5
    space_dimension: int | None = None
    estimated = ("time_scale", "time_exponent", "interaction")

    def __post_init__(self):
        self._check(Radial, "an Exponential, Matern, Gaussian, PoweredExponential or RationalQuadratic")
        if self.space.most_dimensions is not None:
            raise ValueError(
                f"Gneiting: expected for space a covariance that is valid in any dimension, such as Matern, got "
                f"{self.space!r}"
            )
        for name, zero in (("time_scale", False), ("time_exponent", False), ("interaction", True)):
            object.__setattr__(self, name, checked(name, getattr(self, name), zero))
        for name in ("time_exponent", "interaction"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name}: expected a number up to 1, as no other is valid, got {getattr(self, name)}")

    @property
    def variance_at_zero(self) -> float:
        return self.space.variance_at_zero

    @property
    def decay(self) -> float:
        """d/2, the exponent of ψ."""
        return 0.5 * self.space_dimension

    @property
    def half_time(self) -> float:
        """About the time after which the covariance is halved."""
        u = self.time_scale * (2 ** (1 / self.decay) - 1) ** (0.5 / self.time_exponent)
        return 2.0 ** round(float(np.log2(u)))

    def in_units(self, units: Sequence[float]) -> Covariance:
        if len(units) != self.dimension or self.space.rotation is not None:
            return InUnits(self, tuple(units))
        space = self.space if set(units[:-1]) == {1.0} else self.space.in_units(units[:-1])
        return replace(self, space=space, time_scale=self.time_scale / units[-1])

    def evaluate(self, x: Array, y: Array, out: Array) -> None:
        xp, (h, k), space = array_module(x, y), (x[..., :-1], y[..., :-1]), self.space
        psi = xp.empty_like(out)
        xp.subtract(x[..., -1], y[..., -1], out=psi)
        xp.abs(psi, out=psi)
        psi *= 1 / self.time_scale
        xp.power(psi, 2 * self.time_exponent, out=psi)
        psi += 1
        if space.rotation is None:
            squared_distances(h, k, out, space.stretches)
        else:
            squared_distances_of(space.metric, h, k, out)
        if self.interaction:
            out /= psi if self.interaction == 1 else psi**self.interaction
        space.of_squares(out)
        out *= xp.power(psi, -self.decay, out=psi)

    def on_device(self, space: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        time = 1 / self.time_scale, 2 * self.time_exponent
        distance = self.space.distance_on_device(isotropic(self.space_dimension))
        values = self.space.of_device_distance(within_time(distance, *time, self.interaction), dtype)
        return powers_of_time(values, self.dimension, *time, self.decay, dtype)


def halved(cov, dim):
    """A power of two, the distance along the first of dim coordinates from which cov is half of what it is at 0 or
    less; infinite where there is none."""
    x = np.zeros((len(POWERS), dim))
    x[:, 0] = POWERS
    with np.errstate(all="ignore"):
        below = np.flatnonzero(cov.values(x, np.zeros((1, dim))) <= 0.5 * cov.variance_at_zero)
    return float(POWERS[below[0]]) if len(below) else np.inf


def _beside(F):
    """The rotation of space F (d, d) beside unturned time, (d + 1, d + 1)."""
    whole = np.eye(len(F) + 1)
    whole[:-1, :-1] = F
    return whole
