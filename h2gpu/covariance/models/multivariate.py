"""Two families of covariances of several variables.

    Coregionalization    Σ_k B_k[i, j] ρ_k(h)                                  B_k positive semidefinite
    MultivariateMatern   ρ_ij σ_i σ_j M(h/a; ½(ν_i + ν_j))                     M(z; ν) = 2^(1−ν)/Γ(ν) z^ν K_ν(z)
    valid iff            β_ij = ρ_ij / γ_ij is positive semidefinite
                         γ_ij = g(ν_i)^½ g(ν_j)^½ / g(½(ν_i + ν_j)),   g(ν) = Γ(ν + d/2)/Γ(ν)

References: Goulard & Voltz (1992), Linear coregionalization model; Gneiting, Kleiber & Schlather (2010), Matérn
cross-covariance functions for multivariate random fields, theorem 3 and its proof.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from h2gpu.covariance.base import Covariance
from h2gpu.covariance.checks import checked
from h2gpu.covariance.functions import InUnits, Radial
from h2gpu.covariance.matern import Matern
from h2gpu.covariance.models.variables import OfVariables, checked_matrix, from_partial, to_partial
from h2gpu.texts import brief
from h2gpu.typing import ArrayLike


@dataclass(frozen=True)
class Coregionalization(OfVariables):
    """The linear model of coregionalization of points (x, i), i the index of a variable.

    sills            K matrices (p, p), symmetric and positive semidefinite: B_k, squared units of the variables
    parts            K covariances of variance 1 in space, such as Exponential(1.0, 3.0)
    space_dimension  number of coordinates in space, where no part tells it: by default 2

    Estimated are the variances of each B_k, its partial correlations, and the length scales. Errors of measurement are
    `CoKriging`'s nugget. Raises ValueError for matrices that are not positive semidefinite, and other parts.
    Source: Goulard & Voltz (1992); Wackernagel (2003).

    >>> from h2gpu.covariance import Exponential
    >>> cov = Coregionalization([[[1.0, 0.5], [0.5, 2.0]]], [Exponential(1.0, 10.0)])
    >>> cov([[0.0, 0.0, 0]], [[0.0, 0.0, 1], [10.0, 0.0, 1]]).round(4)
    array([[0.5   , 0.1839]])
    """

    matrices: ArrayLike
    parts: Sequence[Covariance]
    space_dimension: int | None = None
    index_unit: float | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self):
        matrices, parts = tuple(self.matrices), tuple(self.parts)
        if not parts or len(matrices) != len(parts):
            raise ValueError(
                f"Coregionalization: expected a matrix for each of at least one covariance, got {len(matrices)} "
                f"matrices and {len(parts)} covariances"
            )
        self._check_space(parts)
        for rho in parts:
            if not isinstance(rho, (Radial, InUnits)) or abs(rho.variance_at_zero - 1) > 1e-12:
                raise ValueError(
                    f"Coregionalization: expected covariances such as Exponential of variance 1, got {brief(rho)}; the "
                    "matrices hold the variances"
                )
        first = checked_matrix("matrices", matrices[0])
        rest = [checked_matrix("matrices", B, len(first)) for B in matrices[1:]]
        object.__setattr__(self, "matrices", (first, *rest))
        object.__setattr__(self, "parts", parts)

    @property
    def structures(self) -> "tuple[tuple[np.ndarray, Covariance], ...]":
        return tuple((np.array(B), rho) for B, rho in zip(self.matrices, self.parts))

    def in_units(self, units: Sequence[float]) -> Covariance:
        parts = self.parts
        if set(units[:-1]) != {1.0}:
            parts = tuple(rho.in_units(units[:-1]) for rho in parts)
        return replace(self, parts=parts, index_unit=(self.index_unit or 1.0) * units[-1])

    def scaled(self, factor: float) -> Covariance:
        return replace(self, matrices=tuple(checked("factor", factor) * np.array(B) for B in self.matrices))

    @property
    def numbers(self) -> Iterator[tuple[str, str, float]]:
        """(kind, name, value) of all that can be estimated, in the order that `with_numbers` takes."""
        for k, B in enumerate(self.matrices):
            B = np.array(B)
            yield from (("variance", f"matrices[{k}][{i},{i}]", v) for i, v in enumerate(np.diagonal(B).tolist()))
            s = np.sqrt(np.maximum(np.diagonal(B), 1e-300))
            yield from _named_partial(to_partial(B / np.outer(s, s)), f"matrices[{k}]", len(B))

    def with_numbers(self, values: Iterator[float]) -> Covariance:
        """The same with other numbers, from an iterator."""
        matrices, p = [], self.variables
        for _ in self.matrices:
            s = np.sqrt([next(values) for _ in range(p)])
            R = from_partial([next(values) for _ in range(p * (p - 1) // 2)], p)
            matrices.append(R * np.outer(s, s))
        return replace(self, matrices=tuple(matrices))


@dataclass(frozen=True)
class MultivariateMatern(OfVariables):
    """The parsimonious multivariate Matérn covariance of points (x, i): a smoothness a variable, one range.

    variance         (p,) σ_i², squared units of the variables
    length_scale     a, where z = h/a as in GpGp and fields (`Matern.from_range`): one number for all
    smoothness       (p,) ν_i; between two variables it is the mean of theirs
    correlation      (p, p) ρ_ij of variables at one place, or one number for two variables
    space_dimension  d, in which it must be valid: by default 2

    Raises ValueError for correlations that are too large for their smoothnesses: with ν = ½ and 3/2 in the plane 0.866
    is the most. Source: Gneiting, Kleiber & Schlather (2010), theorem 3.

    >>> cov = MultivariateMatern((1.0, 4.0), 10.0, (0.5, 1.5), 0.8)
    >>> cov([[0.0, 0.0, 0]], [[0.0, 0.0, 0], [0.0, 0.0, 1], [10.0, 0.0, 0]]).round(4)
    array([[1.    , 1.6   , 0.3679]])
    """

    variance: Sequence[float]
    length_scale: float
    smoothness: Sequence[float]
    correlation: ArrayLike | float
    space_dimension: int = 2
    index_unit: float | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self):
        variance = tuple(checked("variance", v) for v in self.variance)
        smoothness = tuple(checked("smoothness", v) for v in self.smoothness)
        p, R = len(variance), self.correlation
        if p < 2 or len(smoothness) != p:
            raise ValueError(f"smoothness: expected one for each of p ≥ 2 variances, got {len(smoothness)} for {p}")
        if np.ndim(R) == 0 and p == 2:
            R = ((1.0, R), (R, 1.0))
        R = np.array(checked_matrix("correlation", R, p))
        if not np.allclose(np.diagonal(R), 1, atol=1e-12):
            raise ValueError(f"correlation: expected ones on the diagonal, got {np.diagonal(R).tolist()}")
        given = {"variance": variance, "smoothness": smoothness, "correlation": tuple(map(tuple, R.tolist()))}
        for name, value in {**given, "length_scale": checked("length_scale", self.length_scale)}.items():
            object.__setattr__(self, name, value)
        self._check_space([Matern()])
        beta = R / self.bounds
        if np.linalg.eigvalsh(beta)[0] < -1e-10:
            raise ValueError(
                f"correlation: expected {self._most} in {self.space_dimension} dimensions for smoothness "
                f"{', '.join(f'{nu:g}' for nu in smoothness)}, got {R[np.tril_indices(p, -1)].tolist()}"
            )

    @property
    def _most(self):
        if self.variables == 2:
            return f"at most {self.bounds[0, 1]:.6g}"
        return "a matrix that is positive semidefinite when divided by `bounds`"

    @property
    def variables(self) -> int:
        return len(self.variance)

    @property
    def bounds(self) -> np.ndarray:
        """γ (p, p): of two variables by themselves the largest correlation."""
        g = lambda nu: math.lgamma(nu + 0.5 * self.space_dimension) - math.lgamma(nu)  # noqa: E731
        nu = self.smoothness
        return np.exp([[0.5 * (g(a) + g(b)) - g(0.5 * (a + b)) for b in nu] for a in nu])

    @property
    def structures(self) -> "tuple[tuple[np.ndarray, Covariance], ...]":
        sigma = np.sqrt(self.variance)
        C = np.array(self.correlation) * np.outer(sigma, sigma)
        mean = 0.5 * np.add.outer(self.smoothness, self.smoothness)
        return tuple(
            (np.where(mean == nu, C, 0.0), Matern(1.0, self.length_scale * math.sqrt(2 * nu), nu))
            for nu in np.unique(mean).tolist()
        )

    def in_units(self, units: Sequence[float]) -> Covariance:
        if len(set(units[:-1])) != 1:
            raise ValueError(f"units: expected one for all coordinates in space, got {units}")
        unit = (self.index_unit or 1.0) * units[-1]
        return replace(self, length_scale=self.length_scale / units[0], index_unit=unit)

    def scaled(self, factor: float) -> Covariance:
        return replace(self, variance=tuple(checked("factor", factor) * v for v in self.variance))

    @property
    def numbers(self) -> Iterator[tuple[str, str, float]]:
        """(kind, name, value) of all that can be estimated, in the order that `with_numbers` takes."""
        for kind in ("variance", "smoothness"):
            yield from ((kind, f"{kind}[{i}]", v) for i, v in enumerate(getattr(self, kind)))
        yield "length_scale", "length_scale", self.length_scale
        yield from _named_partial(to_partial(np.array(self.correlation) / self.bounds), "correlation", self.variables)

    def with_numbers(self, values: Iterator[float]) -> Covariance:
        """The same with other numbers, from an iterator; `partial` ones are of β, so that all are valid."""
        p = self.variables
        variance, smoothness = (tuple(next(values) for _ in range(p)) for _ in range(2))
        length, beta = next(values), from_partial([next(values) for _ in range(p * (p - 1) // 2)], p)
        bare = MultivariateMatern(variance, length, smoothness, np.eye(p), self.space_dimension)
        return replace(bare, correlation=beta * bare.bounds, index_unit=self.index_unit)


def _named_partial(values, name, p):
    """("partial", name, value) of partial correlations."""
    places = [(i, j) for i in range(p) for j in range(i)]
    for (i, j), value in zip(places, values):
        yield "partial", f"{name}.partial[{i},{j}]", value
