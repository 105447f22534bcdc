"""What covariances share that change along coordinates, or along columns of a table beside them.

    exponent(x) = bᵀ (x − c)        x = (coordinates, columns)

A column tells no distance. Trees see it so small that clusters far from each other are so in space: a change that
matters, 1/b, counts as a sixteenth of the distance at which the covariance is halved.
Reference: Risser & Calder (2015), Regression-based covariance functions for nonstationary spatial modeling.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from h2gpu.covariance.base import Covariance
from h2gpu.covariance.checks import checked_integer, is_finite
from h2gpu.covariance.models.spacetime import halved
from h2gpu.covariance.user import InFrame
from h2gpu.texts import brief
from h2gpu.typing import Frame

GAP = 2.0**-4
LEAST = 1e-6  # slope of a column that has none: estimations start there


class OfColumns:
    """A part of a covariance of another, `covariance`, with `slopes`, `center` and `columns`."""

    @property
    def parts(self) -> tuple[Covariance, ...]:
        return (self.covariance,)

    @property
    def dimension(self) -> int:
        return len(self.slopes)

    @property
    def seen(self) -> int:
        """How many coordinates the inner covariance is one of."""
        return len(self.slopes) - (self.columns - self.covariance.columns)

    @property
    def units(self) -> Sequence[float] | None:
        inner, d = self.covariance.units, self.seen
        if d == len(self.slopes):
            return inner
        near = halved(self.covariance, d)
        near = near if np.isfinite(near) else 1.0
        own = [2.0 ** -round(np.log2(max(abs(b), LEAST) * GAP * near)) for b in self.slopes[d:]]
        return (*((1.0,) * d if inner is None else inner), *own)

    def in_units(self, units: Sequence[float]) -> Covariance:
        d, u = self.seen, np.asarray(units)
        inner = self.covariance if set(units[:d]) == {1.0} else self.covariance.in_units(units[:d])
        return self._moved(inner, np.multiply(self.slopes, u), np.divide(self.center, u))

    @property
    def frame(self) -> Frame | None:
        inner, d = self.covariance.frame, self.seen
        return None if inner is None else tuple(map(tuple, _beside(np.asarray(inner), len(self.slopes) - d).tolist()))

    def in_frame(self, frame: Frame) -> Covariance:
        F, d = np.asarray(frame), self.seen
        if not np.array_equal(F, _beside(F[:d, :d], len(F) - d)):
            return InFrame(self, frame)
        inner = self.covariance.in_frame(tuple(map(tuple, F[:d, :d].tolist())))
        return self._moved(inner, F @ self.slopes, F @ self.center)

    def _moved(self, inner, slopes, center):
        """The same of other coordinates."""
        return type(self)(inner, tuple(slopes.tolist()), tuple(center.tolist()), self.columns)


def exponent(cov, x):
    """bᵀ (x − c) of points x (..., d): (...)."""
    return sum(b * (x[..., k] - c) for k, (b, c) in enumerate(zip(cov.slopes, cov.center)))


def checked_slopes(cov, name, columns):
    """Slopes and center of a frozen covariance as tuples, and its columns. Raises ValueError."""
    slopes = _numbers(name, getattr(cov, name))
    center = (0.0,) * len(slopes) if cov.center is None else _numbers("center", cov.center)
    columns = checked_integer("columns", columns, cov.covariance.columns, len(slopes) - 1)
    seen = len(slopes) - (columns - cov.covariance.columns)
    if len(center) != len(slopes) or cov.covariance.dimension not in (None, seen):
        wanted = (cov.covariance.dimension or len(center) - len(slopes) + seen) + len(slopes) - seen
        raise ValueError(f"{name}: expected one a coordinate, {wanted} of them, got {len(slopes)}")
    for field, value in ((name, slopes), ("center", center), ("columns", columns)):
        object.__setattr__(cov, field, value)


def _beside(F, columns):
    """The rotation F (d, d) beside columns that stay, (d + columns, d + columns)."""
    whole = np.eye(len(F) + columns)
    whole[: len(F), : len(F)] = F
    return whole


def _numbers(name, values):
    """A tuple of finite floats; ValueError for others."""
    given = tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else ()
    if not given or not all(isinstance(v, (int, float, np.number)) and is_finite(v) for v in given):
        raise ValueError(f"{name}: expected finite numbers, one a coordinate, got {brief(values, 80)}")
    return tuple(map(float, given))
