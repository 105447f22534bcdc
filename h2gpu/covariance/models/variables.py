"""Covariances of several variables at points (x, i): the last coordinate is the index of a variable, 0 to p − 1.

    C((x, i), (y, j)) = Σ_k B_k[i, j] ρ_k(x − y)                          structures (B_k, ρ_k)
    R = L Lᵀ,   L_ij = c_ij (1 − Σ_{k<j} L_ik²)^½,   −1 < c_ij < 1        correlations from partial ones

Any c_ij make a correlation matrix, so that an estimation cannot leave the valid ones.
References: Wackernagel (2003), Multivariate geostatistics, chapter 26; Lewandowski, Kurowicka & Joe (2009).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.covariance.algebra import Nugget
from h2gpu.covariance.base import PLANE, Covariance
from h2gpu.covariance.checks import checked
from h2gpu.covariance.models.spacetime import halved
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike

GAP = 2.0**-4  # of the distance at which a covariance is halved: how far apart variables at one site lie for neighbours
DEFINITE = 1e-10  # of the largest eigenvalue: what rounding may have taken from the least one
MOST_VARIABLES = 20


class OfVariables(Covariance):
    """What covariances of several variables share; a subclass has `structures`, `space_dimension`, `index_unit`."""

    @property
    def structures(self) -> "tuple[tuple[np.ndarray, Covariance], ...]":
        """Tuple of (B, ρ): a (p, p) array, and a covariance of variance 1 of the coordinates but the last."""
        raise NotImplementedError

    @property
    def variables(self) -> int:
        """p."""
        return len(self.structures[0][0])

    @property
    def dimension(self) -> int:
        return self.space_dimension + 1

    @property
    def sills(self) -> np.ndarray:
        """(p, p) covariances at distance zero, Σ_k B_k."""
        return sum(B for B, _ in self.structures)

    @property
    def variance_at_zero(self) -> float:
        """The mean of the variables'; `variances` tells them apart."""
        return float(np.diagonal(self.sills).mean())

    def variances(self, x: Array) -> Array:
        xp = array_module(x)
        return xp.asarray(np.diagonal(self.sills).copy(), dtype=x.dtype)[self.indices(x)]

    def indices(self, x: Array) -> Array:
        """Which variable each point (..., d) is of, (...) integers."""
        xp = array_module(x)
        i = xp.rint(x[..., -1] * (self.index_unit or 1.0)).astype(np.int64)
        return xp.clip(i, 0, self.variables - 1)

    def embed(self, points: ArrayLike) -> Array:
        points = super().embed(points)
        xp, p = array_module(points), self.variables
        index = points[:, -1]
        if len(index) and not bool(((index >= 0) & (index < p) & (index == xp.rint(index))).all()):
            raise ValueError(f"points: expected as last coordinate the index of a variable, 0 to {p - 1}, got others")
        return points

    @property
    def units(self) -> Sequence[float] | None:
        near = min(halved(rho, self.space_dimension) for _, rho in self.structures)
        near = near if np.isfinite(near) else 1.0
        inner = next((rho.units for _, rho in self.structures if rho.units is not None), None)
        return (*((1.0,) * self.space_dimension if inner is None else inner), 1 / (GAP * near))

    def evaluate(self, x: Array, y: Array, out: Array) -> None:
        xp = array_module(x, y)
        i, j = self.indices(x), self.indices(y)
        out[...] = 0
        part = xp.empty_like(out)
        for B, rho in self.structures:
            rho.evaluate(x[..., :-1], y[..., :-1], part)
            part *= xp.asarray(B, dtype=out.dtype)[i, j]
            out += part

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> Array:
        x = self.embed(X)
        return self.values(x[:, None], (x if Y is None else self.embed(Y))[None])

    def _check_space(self, parts):
        """ValueError for parts that are no covariances of one space; space_dimension is settled."""
        for rho in parts:
            plain = isinstance(rho, Covariance) and rho.embedding in (None, PLANE) and not (rho.timed or rho.nugget)
            if not plain or rho.variables is not None:
                raise ValueError(
                    f"{type(self).__name__}: expected covariances in space without nugget, got {brief(rho)}"
                )
        known = {rho.dimension for rho in parts} - {None}
        given = {self.space_dimension} - {None}
        if len(known | given) > 1:
            raise ValueError(f"space_dimension: expected one number of coordinates, got {sorted(known | given)}")
        object.__setattr__(self, "space_dimension", int(next(iter(known | given), 2)))
        for rho in parts:
            if rho.most_dimensions is not None and self.space_dimension > rho.most_dimensions:
                raise ValueError(f"space_dimension: expected at most {rho.most_dimensions} for {rho!r}")


@dataclass(frozen=True)
class VariableNugget(OfVariables):
    """Independent errors of the variables: variances[i] between a point of variable i and itself, else 0.

    variances   (p,) numbers ≥ 0, squared units of the variables

    Raises ValueError for others.
    """

    variance: tuple
    space_dimension: int = 2
    index_unit: float | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self):
        given = tuple(checked("variance", v, zero=True) for v in self.variance)
        object.__setattr__(self, "variance", given)

    @property
    def structures(self) -> "tuple[tuple[np.ndarray, Covariance], ...]":
        return ((np.diag(self.variance), None),)

    @property
    def units(self) -> Sequence[float] | None:
        return None

    def in_units(self, units: Sequence[float]) -> Covariance:
        return replace(self, index_unit=(self.index_unit or 1.0) * units[-1])

    def scaled(self, factor: float) -> Covariance:
        return replace(self, variance=tuple(checked("factor", factor) * v for v in self.variance))

    def evaluate(self, x: Array, y: Array, out: Array) -> None:
        xp = array_module(x, y)
        i, same = self.indices(x), self.indices(x) == self.indices(y)
        for k in range(x.shape[-1] - 1):
            same = same & (x[..., k] == y[..., k])
        out[...] = xp.where(same, xp.asarray(np.array(self.variance), dtype=out.dtype)[i], 0)


def structures_of(cov):
    """The structures (B, ρ) of a covariance of several variables, or of a sum of such and nuggets, which have none.
    Raises ValueError for others."""
    found = []
    for term in getattr(cov, "terms", (cov,)):
        if not (isinstance(term, Nugget) or hasattr(term, "structures")):
            raise ValueError(f"cov: expected covariances of several variables and nuggets as terms, got {brief(term)}")
        found += [] if isinstance(term, (Nugget, VariableNugget)) else term.structures
    return found


def checked_matrix(name, value, p=None):
    """A symmetric positive semidefinite (p, p) matrix as a tuple of tuples; ValueError for others."""
    given = np.asarray(value, dtype=np.float64) if not isinstance(value, str) else np.empty(0)
    fits = given.ndim == 2 and given.shape[0] == given.shape[1] and 1 <= len(given) <= MOST_VARIABLES
    if not fits or (p is not None and len(given) != p) or not np.isfinite(given).all():
        size = "p, p" if p is None else f"{p}, {p}"
        raise ValueError(
            f"{name}: expected finite numbers of shape ({size}), p up to {MOST_VARIABLES}, got {brief(value, 80)}"
        )
    if not np.allclose(given, given.T, rtol=1e-12, atol=0):
        raise ValueError(f"{name}: expected a symmetric matrix, got {given.tolist()!r:.80}")
    least, *_, most = np.linalg.eigvalsh(given) if len(given) > 1 else (given[0, 0],) * 2
    if least < -DEFINITE * max(most, 0.0) or most <= 0:
        raise ValueError(
            f"{name}: expected a positive semidefinite matrix, got one with the eigenvalue {least:.3g}; the variables "
            "cannot be correlated like that"
        )
    return tuple(map(tuple, given.tolist()))


def from_partial(c, p):
    """The correlation matrix (p, p) of partial correlations c, by rows of the lower triangle."""
    L, values = np.zeros((p, p)), iter(c)
    for i in range(p):
        rest = 1.0
        for j in range(i):
            L[i, j] = next(values) * rest**0.5
            rest = max(rest - L[i, j] ** 2, 0.0)
        L[i, i] = rest**0.5
    return L @ L.T


def to_partial(R):
    """The partial correlations of a correlation matrix R (p, p), tuple by rows of the lower triangle."""
    p, c = len(R), []
    L = np.zeros((p, p))
    for i in range(p):
        rest = 1.0
        for j in range(i):
            left = R[i][j] - float(L[i, :j] @ L[j, :j])
            L[i, j] = left / L[j, j] if L[j, j] > 1e-8 else 0.0
            c.append(float(np.clip(L[i, j] / rest**0.5, -1, 1)) if rest > 1e-16 else 0.0)
            rest = max(rest - L[i, j] ** 2, 0.0)
        L[i, i] = rest**0.5
    return tuple(c)
