"""Covariances on the sphere: lon/lat degrees → points of ℝ³, and a function of the distance between them.

    great-circle distance = 2R atan2(‖x − y‖, ‖x + y‖)

The chord alone, 2R asin(‖x − y‖ / 2R), loses half of the digits near antipodes (Kahan 2006, How futile are mindless
assessments of roundoff, section 12: angles).

Positive definite for every data set: with the chord any covariance; with the great-circle distance Exponential and
Matérn up to smoothness ½ and their sums and products (Gneiting, Strictly and non-strictly positive definite
functions on spheres, Bernoulli 19 (2013), table 1). Smoother ones give indefinite matrices and are refused.
"""

from dataclasses import dataclass

from h2gpu.arrays import array_module
from h2gpu.covariance.base import PLANE, Covariance
from h2gpu.covariance.checks import checked
from h2gpu.covariance.device import DeviceFunction, great_circle
from h2gpu.covariance.functions import squared_distances
from h2gpu.texts import brief
from h2gpu.typing import Array, DTypeLike

DISTANCES = ("great-circle", "chordal")


@dataclass(frozen=True)
class Sphere:
    """The embedding of lon/lat degrees (n, 2) into ℝ³ (n, 3), in the unit of the radius."""

    radius: float
    coordinates = 3

    def embed(self, lonlat):
        xp = array_module(lonlat)
        lon, lat = xp.deg2rad(lonlat[:, 0]), xp.deg2rad(lonlat[:, 1])
        if len(lonlat) and float(abs(lonlat[:, 1]).max()) > 90:
            raise ValueError("points: expected latitudes within ±90 degrees; the columns are (lon, lat)")
        return self.radius * xp.stack([xp.cos(lat) * xp.cos(lon), xp.cos(lat) * xp.sin(lon), xp.sin(lat)], axis=1)


@dataclass(frozen=True)
class OnSphere(Covariance):
    """A covariance of the distance on a sphere; see `on_sphere`.

    Raises ValueError as `on_sphere` does. Source: Gneiting (2013), table 1.

    >>> import numpy as np
    >>> from h2gpu.covariance import Exponential
    >>> quarter = OnSphere(Exponential(length_scale=6371.0))(np.array([[0.0, 0.0]]), np.array([[90.0, 0.0]]))
    >>> float(quarter[0, 0].round(4)) == round(float(np.exp(-np.pi / 2)), 4)
    True
    """

    covariance: Covariance
    radius: float = 6371.0
    distance: str = "great-circle"

    def __post_init__(self):
        if not isinstance(self.covariance, Covariance):
            raise ValueError(f"covariance: expected a covariance such as Exponential(), got {brief(self.covariance)}")
        if self.covariance.embedding not in (None, PLANE):
            raise ValueError(f"covariance: expected one not yet on a sphere, got {brief(self.covariance)}")
        if not self.covariance.isotropic:
            raise ValueError(f"covariance: expected a function of the distance alone, got {brief(self.covariance)}")
        if self.covariance.most_dimensions is not None and self.covariance.most_dimensions < 3:
            raise ValueError(f"covariance: expected one that is valid in 3 dimensions, got {brief(self.covariance)}")
        if self.distance not in DISTANCES:
            raise ValueError(f"distance: expected one of {', '.join(DISTANCES)}, got {brief(self.distance)}")
        if self.distance == "great-circle" and not self.covariance.great_circle:
            raise ValueError(
                f"distance: expected a covariance that is positive definite in the great-circle distance, such as "
                f'Exponential or Matern of smoothness ≤ 0.5, got {brief(self.covariance)}; take distance="chordal"'
            )
        object.__setattr__(self, "radius", checked("radius", self.radius))

    dimension = 2

    @property
    def parts(self) -> tuple[Covariance, ...]:
        return (self.covariance,)

    @property
    def embedding(self) -> "Sphere | str | None":
        return Sphere(self.radius)

    @property
    def variance_at_zero(self) -> float:
        return self.covariance.variance_at_zero

    @property
    def nugget(self) -> float:
        return self.covariance.nugget

    @property
    def kinks(self) -> tuple[tuple[float, ...], ...]:
        return self.covariance.kinks  # covariances with kinks are of the chord

    def evaluate(self, x: Array, y: Array, out: Array) -> None:
        xp = array_module(x, y)
        squared_distances(x, y, out)
        xp.sqrt(out, out=out)
        if self.distance == "great-circle":
            across = xp.empty_like(out)
            squared_distances(x, -y, across)
            xp.arctan2(out, xp.sqrt(across, out=across), out=out)
            out *= 2 * self.radius
        self.covariance.of_distances(out)

    def on_device(self, space: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        distance = great_circle(self.radius) if self.distance == "great-circle" else space
        return self.covariance.on_device(distance, dtype)

    def scaled(self, factor: float) -> Covariance:
        return OnSphere(self.covariance.scaled(factor), self.radius, self.distance)


def on_sphere(cov: Covariance, radius: float = 6371.0, distance: str = "great-circle") -> "OnSphere":
    """The covariance `cov` of distances between (lon, lat) points in degrees on a sphere.

    cov       isotropic, its length scale in the unit of the radius
    radius    6371.0 for the Earth in kilometres
    distance  "great-circle", along the surface (positive definite for Matérn smoothness ≤ ½, Exponential among
              them), or "chordal", straight through (positive definite for every cov)

    Raises ValueError for an anisotropic cov, one already on a sphere, any other distance, and a cov that is not
    positive definite in the great-circle distance. Source: Gneiting (2013), table 1.

    >>> from h2gpu.covariance import Exponential
    >>> cov = on_sphere(Exponential(length_scale=6371.0))
    >>> cov([[0.0, 0.0]], [[90.0, 0.0]]).round(4)  # exp(−π/2)
    array([[0.2079]])
    """
    return OnSphere(cov, radius, distance)
