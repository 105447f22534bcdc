"""Covariances that a caller writes as functions of arrays.

    C(x, y) = function(x, y)          C(x, y) = function(‖x − y‖)

Reference: Rasmussen and Williams (2006), section 4.1: which functions are covariances.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.covariance.algebra import Product
from h2gpu.covariance.base import Covariance
from h2gpu.covariance.checks import checked
from h2gpu.covariance.functions import Constant, InUnits, squared_distances
from h2gpu.texts import brief
from h2gpu.typing import Array, Frame

MOST_COORDINATES = 1000  # a file may say any number; values at equal points take an array of as many


class Written(Covariance):
    """What covariances written by callers share: their variance is their value, units and factors come from outside."""

    @property
    def variance_at_zero(self) -> float:
        origin = np.zeros((1, self.dimension or 2))
        return float(self.values(origin, origin)[0])

    def scaled(self, factor: float) -> Covariance:
        return Product((Constant(checked("factor", factor)), self))

    def in_units(self, units: Sequence[float]) -> Covariance:
        return InUnits(self, tuple(units))

    def in_frame(self, frame: Frame) -> Covariance:
        return self if self.isotropic else InFrame(self, frame)

    def parameters(self) -> dict[str, Any]:
        raise ValueError(
            f"{self!r}: a caller's function cannot be written to a file; use a named covariance or an Expression "
            "without function"
        )


@dataclass(frozen=True)
class UserFunction(Written):
    """A caller's own stationary covariance; see `from_function`.

    Raises ValueError for what is no function, and for values of a wrong shape.
    Source: Rasmussen & Williams (2006), section 4.1: which functions are covariances.

    >>> import numpy as np
    >>> UserFunction(lambda x, y: np.exp(-abs(x - y).sum(-1)), 2)(np.eye(2)).round(3).tolist()
    [[1.0, 0.135], [0.135, 1.0]]
    """

    function: Callable
    dimension: int | None = None

    def __post_init__(self):
        check_function(self.function, "(x, y)")
        check_dimension(self.dimension)

    def evaluate(self, x: Array, y: Array, out: Array) -> None:
        write(self.function(x, y), out, f"x {x.shape} and y {y.shape}")


@dataclass(frozen=True)
class DistanceFunction(Written):
    """A caller's own function of the distance; see `from_distance`.

    Raises ValueError for what is no function, and for values of a wrong shape.
    Source: Rasmussen & Williams (2006), section 4.1: which functions are covariances.

    >>> import numpy as np
    >>> DistanceFunction(lambda r: np.exp(-r)).at_distance(np.zeros(2)).tolist()
    [1.0, 1.0]
    """

    function: Callable
    isotropic = True

    def __post_init__(self):
        check_function(self.function, "r")

    def evaluate(self, x: Array, y: Array, out: Array) -> None:
        squared_distances(x, y, out)
        array_module(out).sqrt(out, out=out)
        self.of_distances(out)

    def of_distances(self, r: Array) -> None:
        write(self.function(r), r, f"distances {r.shape}")


@dataclass(frozen=True)
class InFrame(Covariance):
    """A covariance for coordinates frame @ x, evaluated in those before."""

    covariance: Covariance
    frame_of_points: tuple

    @property
    def parts(self):
        return (self.covariance,)

    @property
    def variance_at_zero(self):
        return self.covariance.variance_at_zero

    @property
    def dimension(self):
        return len(self.frame_of_points)

    def in_units(self, units):
        return InUnits(self, tuple(units))

    def evaluate(self, x, y, out):
        back = array_module(x, y).asarray(self.frame_of_points, dtype=x.dtype)
        self.covariance.evaluate(x @ back, y @ back, out)

    def scaled(self, factor):
        return InFrame(self.covariance.scaled(factor), self.frame_of_points)


def from_function(function: Callable[[Array, Array], Array], dimension: int | None = None) -> "UserFunction":
    """The covariance C(x, y) = function(x, y) of the caller, symmetric, stationary and positive definite.

    function   x (..., d), y (..., d) → values in the shape their leading dimensions broadcast to
    dimension  number of coordinates it needs, None for any

    Add `Nugget` for a nugget. On the GPU it is called with CuPy arrays; `Expression` is evaluated by one kernel there,
    some ten times faster. Raises ValueError, here for wrong arguments and later for values of a wrong shape.
    Source: Rasmussen & Williams (2006), section 4.1: which functions are covariances.

    >>> import numpy as np
    >>> cov = from_function(lambda x, y: np.exp(-abs(x - y).sum(-1)), dimension=2)
    >>> cov(np.array([[0.0, 0.0], [1.0, 1.0]])).round(3).tolist()
    [[1.0, 0.135], [0.135, 1.0]]
    """
    return UserFunction(function, dimension)


def from_distance(function: Callable[[Array], Array]) -> "DistanceFunction":
    """The covariance C(x, y) = function(‖x − y‖) of the caller, positive definite in the dimensions it is used in.

    function   array of distances r ≥ 0 → values of the same shape; it may overwrite its argument

    As `from_function`, and `on_sphere` takes it.

    Raises ValueError for what is no function, and later for values of a wrong shape.
    Source: Rasmussen & Williams (2006), section 4.1: which functions are covariances.

    >>> import numpy as np
    >>> from_distance(lambda r: np.exp(-(r**1.5)))([[0.0], [1.0]]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """
    return DistanceFunction(function)


def write(values, out, given):
    """Copy the values of a caller's function to `out`. Raises ValueError when their shape differs."""
    shape = getattr(values, "shape", None)
    if shape != out.shape:
        raise ValueError(
            f"function: expected values of shape {out.shape} for {given}, got {values if shape is None else shape}; "
            "compute with array operations that broadcast, reduce the last dimension of points"
        )
    out[...] = values


def check_function(function, arguments):
    """Raises ValueError for what cannot be called."""
    if not callable(function):
        raise ValueError(f"function: expected a function of {arguments}, got {brief(function)}")


def check_dimension(dimension):
    """Raises ValueError for what is not a number of coordinates."""
    if dimension is not None and not (type(dimension) is int and 0 < dimension <= MOST_COORDINATES):
        raise ValueError(
            f"dimension: expected a positive integer up to {MOST_COORDINATES} or None, got {brief(dimension, 80)}"
        )
