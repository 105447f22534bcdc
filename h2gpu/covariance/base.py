"""What every covariance can do: be evaluated, scaled, added and multiplied, on the CPU and within kernels.

    C_ij = c(x_i, y_j) + nugget δ_ij

Reference: Rasmussen and Williams (2006), chapter 4.
"""

from collections.abc import Sequence
from dataclasses import fields
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from h2gpu.arrays import any_array, array_module
from h2gpu.covariance.checks import as_points, check_lengths, float_type
from h2gpu.covariance.device import DeviceFunction, PairFunction
from h2gpu.typing import Array, ArrayLike, DTypeLike, Frame

if TYPE_CHECKING:
    from h2gpu.covariance.sphere import Sphere

PLANE = "plane"  # the embedding of ordinary coordinates: they are used as they are
OMITTED = (
    "rotation",
    "index_unit",
    "columns",
)  # of the dictionaries of parameters where they are None or 0, as files before it have none
CHUNK = 1 << 16  # entries at a time on the CPU: temporaries stay in cache, malloc reuses them, and a thread that waits
# for the interpreter waits rarely (two threads: 3.1 ns an entry, 4.1 with chunks of 24,000)


class Covariance:
    """Base of all covariances. A subclass is a frozen dataclass with `evaluate`, `variance_at_zero` and `scaled`.

    Calling one raises ValueError for points that it does not take; `+` and `*` compose.
    Source: Rasmussen & Williams (2006), chapter 4.

    >>> import numpy as np
    >>> from h2gpu.covariance import Exponential, Nugget
    >>> field = 2 * Exponential(length_scale=10.0) + Nugget(0.5)
    >>> field(np.array([[0.0, 0.0], [0.0, 10.0]])).round(3).tolist()
    [[2.5, 0.736], [0.736, 2.5]]
    """

    estimated = ()  # attributes that are parameters of the field: positive numbers, or tuples of them

    __array_ufunc__ = None  # so that numpy.float64(2) * cov calls __rmul__ here

    @property
    def variance_at_zero(self) -> float:
        """f(0): the value at distance zero, nugget not counted."""
        raise NotImplementedError

    def variances(self, x: Array) -> Array | float:
        """The values between embedded points x (..., d) and themselves: (...), or one number where all are equal."""
        return self.variance_at_zero

    @property
    def nugget(self) -> float:
        """What an observation's covariance with itself has in addition to f(0)."""
        return 0.0

    @property
    def dimension(self) -> int | None:
        """Number of coordinates a point must have, or None when any number will do."""
        return None

    @property
    def embedding(self) -> "Sphere | str | None":
        """Where the points live: PLANE, a `Sphere`, or None when that makes no difference (a nugget)."""
        return PLANE

    @property
    def isotropic(self) -> bool:
        """Whether f is a function of the distance alone, so that `at_distance` works."""
        return False

    parts = ()  # the covariances that it is made of
    stationary = True  # whether it is a function of x − y alone
    timed = False  # whether the last coordinate is time
    columns = 0  # how many of the last coordinates change the field without telling a place
    variables = None  # number of variables, where the last coordinate is the index of one
    most_dimensions = None  # coordinates up to which it is positive definite; None: any number
    kinks = ()  # of each distance at which it is not smooth, the factors of the coordinates that make it 1

    @property
    def great_circle(self) -> bool:
        """Whether it stays positive definite as a function of the great-circle distance; a caller's own is trusted."""
        return True

    @property
    def units(self) -> Sequence[float] | None:
        """Units of the coordinates in which the field varies about equally fast along each, or None: as they are.

        Powers of two, so that a change of units rounds nothing.
        """
        return None

    def in_units(self, units: Sequence[float]) -> "Covariance":
        """The same covariance for coordinates divided by `units`, one positive number a coordinate."""
        return self

    @property
    def frame(self) -> Frame | None:
        """Rows: axes (d, d) along which the field varies independently, or None: the coordinates' own."""
        return None

    def in_frame(self, frame: Frame) -> "Covariance":
        """The same covariance for coordinates frame @ x, an orthogonal matrix."""
        return self

    @property
    def placement(self) -> tuple[Frame | None, Sequence[float] | None]:
        """Frame and units of the coordinates in which clustering and interpolation work, each or None; see `placed`."""
        frame = self.frame
        return frame, (self if frame is None else self.in_frame(frame)).units

    def placed(self, frame: Frame | None, units: Sequence[float] | None) -> "Covariance":
        """The same covariance for coordinates (frame @ x) / units."""
        turned = self if frame is None else self.in_frame(frame)
        return turned if units is None else turned.in_units(units)

    def values(self, x: Array, y: Array, out: Array | None = None) -> Array:
        """f(x − y) for embedded points, without nugget.

        x (..., d) and y (..., d) broadcast against each other; the answer, written to `out` if given, has the
        shape of their leading dimensions and their float type. Raises ValueError when d does not fit.

        On the CPU it is computed in chunks of the first dimension: a third of the time of whole arrays, whose
        temporaries the system hands out page by page (exponential, 2D, 10^5 entries: 3 against 8 ns an entry).
        """
        xp = array_module(x, y)
        if out is None:
            out = xp.empty(xp.broadcast(x[..., 0], y[..., 0]).shape, xp.result_type(x, y))
        if out.ndim == 0:
            self.evaluate(x[None], y[None], out[None])
            return out
        if out.size <= CHUNK or xp is not np:
            self.evaluate(x, y, out)
            return out
        x, y = (p.reshape((1,) * (out.ndim + 1 - p.ndim) + p.shape) for p in (x, y))
        rows = max(1, CHUNK * len(out) // out.size)
        for i in range(0, len(out), rows):
            x_i, y_i = (p[i : i + rows] if len(p) > 1 else p for p in (x, y))
            self.evaluate(x_i, y_i, out[i : i + rows])
        return out

    def evaluate(self, x: Array, y: Array, out: Array) -> None:
        """Write f(x − y) into `out`."""
        raise NotImplementedError

    @property
    def pair_function(self) -> PairFunction:
        """`values` in a form that `batched.pairwise` evaluates by one kernel on the GPU, where there is one."""
        return PairFunction(self)

    @property
    def coordinates(self) -> int | None:
        """Number of coordinates an embedded point must have, or None when any number will do."""
        return self.dimension if self.embedding in (None, PLANE) else self.embedding.coordinates

    def on_device(self, space: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        """f of the distance `space` as a DeviceFunction (see `device`), or None where no kernel knows it."""
        return None

    @any_array
    def at_distance(self, r: ArrayLike) -> Array:
        """f at distances r ≥ 0 (any shape), without nugget. Raises ValueError when f depends on the direction."""
        if not self.isotropic:
            raise ValueError(f"{self!r}: expected a covariance of the distance alone, with one length scale")
        values = array_module(r).array(r, dtype=float_type(r), order="C")
        self.of_distances(values.reshape(-1))  # a view
        return values

    def of_distances(self, r: Array) -> None:
        """Overwrite an array of distances with f, for isotropic f."""
        raise NotImplementedError

    def embed(self, points: ArrayLike) -> Array:
        """Coordinates in which clustering and `values` work: points (n, dim) → (n, d). Raises ValueError."""
        points = as_points(points)
        check_lengths(self, points.dtype)
        if self.dimension not in (None, points.shape[1]):
            advice = (
                "the last one is the index of a variable"
                if self.variables
                else "give one length scale for all coordinates or one for each"
            )
            raise ValueError(
                f"points: expected {self.dimension} coordinates a point for {self!r}, got {points.shape[1]}; {advice}"
            )
        if self.most_dimensions is not None and points.shape[1] > self.most_dimensions:
            raise ValueError(
                f"points: expected at most {self.most_dimensions} coordinates, up to which {self!r} is positive "
                f"definite, got {points.shape[1]}; take another covariance, such as Wendland(most_dimensions=…)"
            )
        return points if self.embedding in (None, PLANE) else self.embedding.embed(points)

    @any_array
    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> Array:
        """Covariance matrix (n, m) of points X (n, dim) and Y (m, dim); without Y of X with itself plus nugget."""
        x = self.embed(X)
        if Y is not None:
            return self.values(x[:, None], self.embed(Y)[None, :])
        C = self.values(x[:, None], x[None, :])
        C.reshape(-1)[:: len(x) + 1] += self.nugget
        return C

    def scaled(self, factor: float) -> "Covariance":
        """factor · C, the factor positive."""
        raise NotImplementedError

    def parameters(self) -> dict[str, Any]:
        """Name and numbers as a plain dictionary that JSON can hold; `from_parameters` reads it."""
        found = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        return {"name": type(self).__name__} | {name: v for name, v in found.items() if name not in OMITTED or v}

    def __add__(self, other: "Covariance") -> "Covariance":
        from h2gpu.covariance.algebra import Sum

        return Sum((self, other)) if isinstance(other, Covariance) else NotImplemented

    def __mul__(self, other: "Covariance | float") -> "Covariance":
        from h2gpu.covariance.algebra import Product

        if isinstance(other, Covariance):
            return Product((self, other))
        return self.scaled(other) if isinstance(other, Real) else NotImplemented

    def __rmul__(self, other: float) -> "Covariance":
        return self.scaled(other) if isinstance(other, Real) else NotImplemented


def _plain(value):
    if isinstance(value, Covariance):
        return value.parameters()
    return [_plain(v) for v in value] if isinstance(value, tuple) else value
