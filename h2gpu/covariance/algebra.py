"""The algebra of covariances: f + g and f · g are positive definite when f and g are.

With nuggets a and b (δ = 1 for an observation with itself, else 0):

    (f + aδ) + (g + bδ) = (f + g) + (a + b) δ
    (f + aδ) · (g + bδ) = f g + (a g(0) + b f(0) + a b) δ

Reference: Rasmussen and Williams (2006), section 4.2.4.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.covariance.base import Covariance
from h2gpu.covariance.checks import checked
from h2gpu.covariance.device import DeviceFunction, composed, constant
from h2gpu.texts import brief
from h2gpu.typing import Array, DTypeLike, Frame

if TYPE_CHECKING:
    from h2gpu.covariance.sphere import Sphere


@dataclass(frozen=True)
class Nugget(Covariance):
    """variance · δ: measurement error or variation below the sampling distance. Zero between two observations.

    Raises ValueError for a negative variance. Source: Matheron (1962).

    >>> import numpy as np
    >>> Nugget(0.5)(np.array([[0.0], [1.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    variance: float

    def __post_init__(self):
        object.__setattr__(self, "variance", checked("variance", self.variance, zero=True))

    variance_at_zero = 0.0
    embedding = None

    @property
    def nugget(self) -> float:
        return self.variance

    isotropic = True

    def evaluate(self, x: Array, y: Array, out: Array) -> None:
        out[...] = 0

    def of_distances(self, r: Array) -> None:
        r[...] = 0

    def on_device(self, space: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        return constant(0.0, space)

    def scaled(self, factor: float) -> Covariance:
        return Nugget(checked("factor", factor) * self.variance)


@dataclass(frozen=True)
class Composed(Covariance):
    """Terms that live in one space; shared by Sum and Product."""

    terms: tuple

    def __post_init__(self):
        terms = []
        for term in self.terms:
            if not isinstance(term, Covariance):
                raise ValueError(f"{type(self).__name__}: expected covariances, got {brief(term)}")
            terms += term.terms if type(term) is type(self) else [term]
        if not terms:
            raise ValueError(f"{type(self).__name__}: expected at least one covariance, got none")
        object.__setattr__(self, "terms", tuple(terms))
        self._common("embedding", "wrap the whole composition once: on_sphere(f + g)")
        self._common("dimension", "give every term as many length scales as there are coordinates")
        if len({term.columns for term in terms if term.embedding is not None}) > 1:
            raise ValueError(
                f"{type(self).__name__}: expected terms with the same columns of a table, got some without; wrap them, "
                "such as Modulated(Exponential(), slopes=(0, 0, 0), columns=1)"
            )

    def _common(self, attribute, advice):
        found = {getattr(term, attribute) for term in self.terms} - {None}
        if len(found) > 1:
            names = " and ".join(sorted(map(str, found)))
            raise ValueError(f"{type(self).__name__}: expected terms of one {attribute}, got {names}; {advice}")
        return next(iter(found), None)

    @property
    def parts(self) -> tuple[Covariance, ...]:
        return self.terms

    @property
    def stationary(self) -> bool:
        return all(term.stationary for term in self.terms)

    @property
    def timed(self) -> bool:
        return any(term.timed for term in self.terms)

    @property
    def columns(self) -> int:
        return max(term.columns for term in self.terms)

    @property
    def variables(self) -> int | None:
        return next((term.variables for term in self.terms if term.variables is not None), None)

    def variances(self, x: Array) -> Array | float:
        first, *others = (term.variances(x) for term in self.terms)
        for other in others:
            first = self.combined(first, other)
        return first

    @property
    def embedding(self) -> "Sphere | str | None":
        return self._common("embedding", "")

    @property
    def dimension(self) -> int | None:
        return self._common("dimension", "")

    @property
    def isotropic(self) -> bool:
        return all(term.isotropic for term in self.terms)

    @property
    def great_circle(self) -> bool:
        return all(term.great_circle for term in self.terms)

    @property
    def most_dimensions(self) -> int | None:
        return min((term.most_dimensions for term in self.terms if term.most_dimensions is not None), default=None)

    @property
    def kinks(self) -> tuple[tuple[float, ...], ...]:
        return tuple(kink for term in self.terms for kink in term.kinks)

    @property
    def frame(self) -> Frame | None:
        return next((term.frame for term in self.terms if term.frame is not None), None)

    def in_frame(self, frame: Frame) -> Covariance:
        return replace(self, terms=tuple(term.in_frame(frame) for term in self.terms))

    @property
    def units(self) -> Sequence[float] | None:
        found = [term.units for term in self.terms if term.units is not None]
        return tuple(2.0 ** np.round(np.log2(found).mean(axis=0))) if found else None

    def in_units(self, units: Sequence[float]) -> Covariance:
        return replace(self, terms=tuple(term.in_units(units) for term in self.terms))

    def evaluate(self, x: Array, y: Array, out: Array) -> None:
        self._reduce(lambda term, part: term.evaluate(x, y, part), out)

    def of_distances(self, r: Array) -> None:
        distances = r.copy()

        def part_of(term, part):
            part[...] = distances
            term.of_distances(part)

        self._reduce(part_of, r)

    def on_device(self, space: DeviceFunction, dtype: DTypeLike) -> DeviceFunction | None:
        return composed(type(self).__name__, [term.on_device(space, dtype) for term in self._evaluated])

    def _reduce(self, compute, out):
        """Combine the terms in `out`, computing each by compute(term, part)."""
        first, *others = self.terms
        compute(first, out)
        part = array_module(out).empty_like(out) if others else None
        for term in others:
            compute(term, part)
            self.combine(out, part)


class Sum(Composed):
    """C = Σ terms: independent fields added, such as large-scale + small-scale + Nugget.

    Raises ValueError for terms that are no covariances, or of differing dimensions.
    Source: Rasmussen & Williams (2006), section 4.2.4.

    >>> import numpy as np
    >>> from h2gpu.covariance import Exponential, Gaussian
    >>> f = Exponential() + Gaussian()
    >>> type(f).__name__, f.at_distance(np.array([1.0])).round(3).tolist()
    ('Sum', [0.974])
    """

    @property
    def variance_at_zero(self) -> float:
        return math.fsum(term.variance_at_zero for term in self.terms)

    @property
    def nugget(self) -> float:
        return math.fsum(term.nugget for term in self.terms)

    @property
    def _evaluated(self):
        """The terms that a kernel adds: nuggets are zero between two observations."""
        return [term for term in self.terms if not isinstance(term, Nugget)] or self.terms

    @staticmethod
    def combine(total: Array, part: Array) -> None:
        total += part

    @staticmethod
    def combined(total: Any, part: Any) -> Any:
        return total + part

    def scaled(self, factor: float) -> Covariance:
        return Sum(tuple(term.scaled(factor) for term in self.terms))

    def __repr__(self):
        return " + ".join(map(repr, self.terms))


class Product(Composed):
    """C = Π terms: one field modulated by another, or a separable covariance.

    Raises ValueError for terms that are no covariances, or of differing dimensions.
    Source: Rasmussen & Williams (2006), section 4.2.4.

    >>> import numpy as np
    >>> from h2gpu.covariance import Exponential, Gaussian
    >>> f = Exponential() * Gaussian()
    >>> type(f).__name__, f.at_distance(np.array([1.0])).round(3).tolist()
    ('Product', [0.223])
    """

    @property
    def variance_at_zero(self) -> float:
        return math.prod(term.variance_at_zero for term in self.terms)

    @property
    def nugget(self) -> float:
        f, a = 1.0, 0.0
        for term in self.terms:
            g, b = term.variance_at_zero, term.nugget
            f, a = f * g, a * g + b * f + a * b
        return a

    @property
    def _evaluated(self):
        return self.terms

    @staticmethod
    def combine(total: Array, part: Array) -> None:
        total *= part

    @staticmethod
    def combined(total: Any, part: Any) -> Any:
        return total * part

    def scaled(self, factor: float) -> Covariance:
        return Product((self.terms[0].scaled(factor), *self.terms[1:]))

    def __repr__(self):
        return " * ".join(f"({t!r})" if isinstance(t, Sum) else repr(t) for t in self.terms)
