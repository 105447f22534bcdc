"""The sites of a matrix: points checked and embedded once, in the coordinates in which its covariance measures.

    A_ij = cov(x_i, y_j),     x = frame · embed(points) / units

In these coordinates clusters and interpolation grids are as isotropic as the field.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from h2gpu.arrays import array_module, native, to_host
from h2gpu.covariance.base import Covariance
from h2gpu.covariance.checks import check_points
from h2gpu.texts import brief

VARIANCES = {"float32": (1e-30, 1e30), "float64": (1e-100, 1e100)}  # sums of squares of entries stay in range
ROWS, COLUMNS = 48, 1 << 18  # drawn for the estimate of the norm, at most


@dataclass(frozen=True, eq=False)
class Sites:
    """Row sites, column sites and the covariance between them.

    points      (n, dim) float32 or float64, C-contiguous, where the work is to be done
    col_points  (m, dim) likewise, or None: the rows' points, of a symmetric matrix
    cov         the covariance in these coordinates: `cov.values` takes them as they are
    """

    points: object
    col_points: object
    cov: Covariance

    @classmethod
    def of(cls, points, cov, col_points=None):
        """From points in the caller's coordinates, (n, dim) NumPy or CuPy arrays, and a covariance of those.

        Raises ValueError for points that are not finite (n, dim) arrays, columns that do not fit the rows, and what is
        not a covariance or has a variance out of range.
        """
        x, y = embedded(points, cov, "points"), None if col_points is None else embedded(col_points, cov, "col_points")
        if y is not None and (x.shape[1] != y.shape[1] or x.dtype != y.dtype):
            raise ValueError(
                f"col_points: expected {x.shape[1]} coordinates of {x.dtype} as points have, "
                f"got {y.shape[1]} of {y.dtype}; give both in one coordinate system and precision"
            )
        size = abs(cov.variance_at_zero + cov.nugget)
        least, most = VARIANCES[x.dtype.name]
        if size and not least < size < most:
            raise ValueError(f"cov: expected a variance from {least:g} to {most:g}, got {size:g}; scale it")
        xp, (frame, units) = array_module(x), cov.placement
        if frame is not None:
            axes = xp.asarray(frame, dtype=x.dtype).T
            x, y = xp.ascontiguousarray(x @ axes), None if y is None else xp.ascontiguousarray(y @ axes)
        if units is not None:
            u = xp.asarray(units, dtype=x.dtype)
            x, y = x / u, None if y is None else y / u
        return cls(x, y, cov.placed(frame, units))

    def interpolable(self):
        """Itself; ValueError where no polynomial follows the covariance, whose last coordinate is an index."""
        if self.cov.variables is not None:
            raise ValueError(
                f"cov: expected a covariance of one variable, got {brief(self.cov)}; several are for "
                "h2gpu.statistics.CoKriging, and cov(points) is their dense matrix"
            )
        return self

    @property
    def columns(self):
        """(m, dim) column sites, those of the rows where they are the same."""
        return self.points if self.symmetric else self.col_points

    @property
    def symmetric(self):
        """Whether rows and columns are the same sites."""
        return self.col_points is None

    @property
    def shape(self):
        """(n, m), of the matrix."""
        return len(self.points), len(self.columns)

    @property
    def dim(self):
        """Coordinates of a site."""
        return self.points.shape[1]

    @property
    def dtype(self):
        """float32 or float64."""
        return self.points.dtype

    @property
    def xp(self):
        """The array module of the points: numpy or cupy."""
        return array_module(self.points)

    @cached_property
    def norm(self):
        """About ‖A‖_F without the nugget, from entries in random rows; the same on every device."""
        rng, (n, m) = np.random.default_rng(0), self.shape
        x = to_host(self.points)
        y = x if self.symmetric else to_host(self.col_points)
        drawn = x[rng.integers(n, size=ROWS)]
        y = y[rng.integers(m, size=COLUMNS)] if m > COLUMNS else y
        squares = sum(float(np.sum(self.cov.values(y, point).astype(np.float64) ** 2)) for point in drawn)
        return (squares * n / ROWS * m / len(y)) ** 0.5


def embedded(points, cov, name):
    """The points checked, in the coordinates that the covariance measures distances in, C-contiguous."""
    if not isinstance(cov, Covariance):
        raise ValueError(f"cov: expected a covariance such as h2gpu.covariance.Exponential(), got {brief(cov)}")
    xp = array_module(points)
    points = xp.asarray(points)
    points = points.astype(np.float64) if points.dtype.kind in "iub" else native(points)
    check_points(points, name)
    if points.dtype not in (np.float32, np.float64):
        raise ValueError(f"{name}: expected float32 or float64 coordinates, got {points.dtype}")
    return xp.ascontiguousarray(cov.embed(points))
