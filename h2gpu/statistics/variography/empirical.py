"""The empirical variogram, γ(h) = ½ E (Z(x) − Z(x + h))², by classes of distance.

    classical          γ = Σ (z_i − z_j)² / 2N
    Cressie–Hawkins    γ = (Σ |z_i − z_j|^½ / N)⁴ / 2 (0.457 + 0.494/N),   which outliers disturb less

over the N pairs of a class. References: Matheron (1962); Cressie & Hawkins (1980), Robust estimation of the variogram.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from h2gpu.arrays import any_array, array_module, to_host
from h2gpu.covariance.checks import as_points, checked, checked_integer
from h2gpu.statistics.inputs import finite_rows, seed_of
from h2gpu.statistics.tables import table
from h2gpu.statistics.tables import values as values_of
from h2gpu.statistics.variography import plots
from h2gpu.statistics.variography.fitting import FittedVariogram, fitted
from h2gpu.statistics.variography.pairs import pairs_of, towards
from h2gpu.texts import brief
from h2gpu.typing import ArrayLike, Seed

ESTIMATORS = "classical", "cressie-hawkins"


@dataclass(frozen=True, eq=False)
class EmpiricalVariogram:
    """Classes of distance that hold pairs, ascending.

    distance    (bins,) mean distance of the pairs, in units of the coordinates or of the sphere's radius
    value       (bins,) γ, in squared units of the values
    count       (bins,) pairs
    direction   as it was asked for; None: all
    sphere      radius; None in the plane
    estimator   "classical" or "cressie-hawkins"

    Made by `variogram`, which says what is raised; `fit` raises ValueError where a model cannot be fitted.
    Source: Matheron (1962); Cressie (1985) for `fit`.

    >>> import numpy as np
    >>> from h2gpu.covariance import Exponential
    >>> from h2gpu.statistics import simulate, variogram
    >>> sites = np.random.default_rng(0).random((1000, 2))
    >>> y = simulate(Exponential(length_scale=0.1), sites, random_state=0)[:, 0]
    >>> fit = variogram(sites, y).fit(Exponential())
    >>> 0.2 < fit.cov.variance < 5
    True
    """

    distance: np.ndarray
    value: np.ndarray
    count: np.ndarray
    direction: object = None
    sphere: float | None = None
    estimator: str = "classical"

    def fit(
        self, cov: Any, nugget: float = 0.0, parameters: Sequence[str] | None = None, weights: str = "model"
    ) -> FittedVariogram:
        """The covariance and nugget whose variogram is nearest by weighted least squares: a `fitting.FittedVariogram`.

        cov          `h2gpu.covariance` value: the family, and where numbers that are not estimated stay
        nugget       likewise
        parameters   some of "variance", "length_scale", "nugget", "smoothness", …; default: the first three
        weights      "model": N/γ(h)², Cressie's; "distance": N/h², gstat's; "pairs": N

        A length scale far beyond the distances is told in a ConvergenceWarning. Raises ValueError for other arguments,
        where nothing varies, and for an anisotropic cov unless the variogram has a direction.
        """
        found = fitted(self, cov, nugget, parameters, weights)
        for message in found.messages:
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return found

    def plot(self, fit: Any = None, ax: Any = None, units: str = "", value_units: str = "") -> Any:
        """The classes, their numbers of pairs, and a fitted model, on axes of matplotlib: the axes.

        fit                  `fitting.FittedVariogram` or None
        ax                   axes to draw on; None makes a figure
        units, value_units   of distance, and of the values (the variogram has their square)

        Raises ImportError without matplotlib.
        """
        return plots.variogram(self, fit, ax, units, value_units)


@any_array
def variogram(
    sites: ArrayLike,
    values: ArrayLike,
    *,
    direction: ArrayLike | None = None,
    tolerance: float = math.pi / 8,
    bins: int | ArrayLike = 15,
    longest: float | None = None,
    estimator: str = "classical",
    sphere: float | None = None,
    pairs: int = 1_000_000,
    random_state: Seed = 0,
) -> "EmpiricalVariogram":
    """The EmpiricalVariogram of values (n,) at sites (n, d).

    sites          array, pandas or GeoPandas table, xarray grid; on the sphere (lon, lat) in degrees
    values         (n,) observations, or residuals of a trend
    direction      None: all; an angle in radians, counterclockwise from the first axis (plane); or a vector (d,)
    tolerance      pairs within so many radians of the direction count
    bins           number of classes of equal width, or their edges, ascending
    longest        end of the last class; default: a third of the diagonal of the sites' box
    estimator      "classical" or "cressie-hawkins"
    sphere         radius: distances along the great circle, in its unit; None: plane
    pairs          at most about so many are used, at random
    random_state   seed

    Pairs at one place are left out. Raises ValueError for other arguments, and where no pair is left.
    Source: Matheron (1962); Cressie & Hawkins (1980).

    >>> found = variogram([[0.0], [1.0], [2.0]], [1.0, 3.0, 2.0], bins=[0, 1.5, 2.5])
    >>> found.distance, found.value, found.count
    (array([1., 2.]), array([1.25, 0.5 ]), array([2, 1]))
    """
    x, z = _checked(sites, values, direction, tolerance, estimator, sphere)
    found = pairs_of(x, sphere, checked_integer("pairs", pairs, 1, 1 << 31), seed_of(random_state))
    if direction is not None:
        found = towards(found, x, direction, tolerance)
    edges = _edges(x, bins, longest, sphere)
    inside = (found.distance > 0) & (found.distance > edges[0]) & (found.distance <= edges[-1])
    found = found.where(inside)
    if not len(found.i):
        raise ValueError("variogram: expected pairs within the classes of distance, got none; widen bins or tolerance")
    used, place = np.unique(np.searchsorted(edges, found.distance), return_inverse=True)
    count = np.bincount(place, minlength=len(used))
    gamma = _estimated(np.abs(z[found.i] - z[found.j]), place, count, estimator)
    return EmpiricalVariogram(np.bincount(place, found.distance) / count, gamma, count, direction, sphere, estimator)


def _estimated(differences, place, count, estimator):
    """(bins,) γ of absolute differences and the class of each."""
    if estimator == "classical":
        return np.bincount(place, differences**2) / (2 * count)
    roots = np.bincount(place, np.sqrt(differences)) / count
    return roots**4 / (2 * (0.457 + 0.494 / count))


def _checked(sites, values, direction, tolerance, estimator, sphere):
    """Sites and values as float64 on the host. Raises ValueError."""
    values = values_of(values, sites)
    X = table(sites)
    x = np.asarray(to_host(as_points(X if array_module(X) is not np else np.asarray(X))), np.float64)
    z = np.asarray(values if array_module(values) is np else to_host(values), np.float64)
    if z.shape != (len(x),) or len(x) < 2:
        raise ValueError(f"values: expected {len(x)} numbers, one a site, for 2 or more sites, got shape {z.shape}")
    finite_rows(z, "values")
    if estimator not in ESTIMATORS:
        raise ValueError(f"estimator: expected one of {', '.join(ESTIMATORS)}, got {brief(estimator)}")
    if sphere is not None:
        checked("sphere", sphere)
        if x.shape[1] != 2 or direction is not None:
            raise ValueError("sphere: expected (lon, lat) and no direction, which differs from place to place")
    if direction is not None:
        _check_direction(direction, x.shape[1])
    if not 0 < checked("tolerance", tolerance) <= math.pi / 2:
        raise ValueError(f"tolerance: expected radians above 0, up to π/2, got {brief(tolerance)}")
    return x, z


def _check_direction(direction, dim):
    """ValueError unless it is an angle in the plane, or a vector (dim,) other than zero."""
    try:
        given = np.asarray(direction, np.float64)
    except (TypeError, ValueError):
        given = np.full(1, np.nan)
    angle = dim == 2 and given.ndim == 0
    if not np.isfinite(given).all() or not (angle or (given.shape == (dim,) and given.any())):
        raise ValueError(
            f"direction: expected {'an angle in radians, or ' * (dim == 2)}a vector of {dim} other than zero, got "
            f"{brief(direction)}"
        )
    if angle and abs(given) > 2 * math.pi:
        raise ValueError(
            f"direction: expected radians, from the first axis counterclockwise, got {brief(direction)}; take "
            "np.deg2rad of degrees, 90 less an azimuth"
        )


def _edges(x, bins, longest, sphere):
    """Edges of the classes, ascending. Raises ValueError."""
    if np.ndim(bins):
        edges = np.asarray(bins, np.float64)
        if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all() or edges[0] < 0:
            raise ValueError(f"bins: expected two or more ascending edges ≥ 0, or their number, got {brief(bins)}")
        return edges
    if longest is None:
        spans = np.ptp(x, axis=0)
        longest = float(np.linalg.norm(spans)) / 3
        if longest == 0:
            raise ValueError(f"sites: expected different places, got {len(x)} times the same")
        if sphere is not None:
            longest = min(np.deg2rad(longest), math.pi) * sphere
    return np.linspace(0, checked("longest", longest), checked_integer("bins", bins, 1, 10_000) + 1)
