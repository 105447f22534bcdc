"""The parameters of a covariance that are to be estimated, as a vector of logarithms.

    θ = (log variance, log length scale, …, log nugget),     ∂K/∂θ_j ≈ (K(θ + h e_j) − K(θ − h e_j)) / 2h

Every covariance is a tree of frozen dataclasses; its free numbers are read and replaced in the order of the tree. The
derivative is a covariance-like function itself: it is evaluated, or becomes an H²-matrix, as a covariance does.
"""

from dataclasses import dataclass, replace

import numpy as np

from h2gpu.covariance import Constant, Covariance, Nugget, OnSphere, Product, Sum
from h2gpu.covariance.functions import Radial

NAMES = "variance", "length_scale", "nugget", "smoothness"
USUAL = NAMES[:3]
STEP = 3e-4  # h: differences are right to 1e-7, and rounding is amplified three thousand times, not more


@dataclass(frozen=True)
class Free:
    """One free number: kind (of NAMES), name as users read it, value."""

    kind: str
    name: str
    value: float


@dataclass(frozen=True, eq=False)
class Model:
    """A covariance, the variance of the measurement error, and which of their numbers are free.

    kinds   some of NAMES; "nugget" means the Nugget terms of the covariance where it has any, else the measurement
            error: one sees both only where sites repeat
    """

    cov: Covariance
    nugget: float
    kinds: tuple = USUAL

    @property
    def free(self):
        """The free numbers, in the order of the vector θ."""
        found = list(_numbers(self.cov, self.kinds))
        return [*found, Free("nugget", "nugget", self.nugget)] if self.error_is_free else found

    @property
    def error_is_free(self):
        """Whether the measurement error is one of the free numbers, the last one."""
        own = any(True for _ in _numbers(self.cov, ("nugget",)))
        return "nugget" in self.kinds and not own

    @property
    def names(self):
        """Of the entries of θ."""
        return [free.name for free in self.free]

    @property
    def theta(self):
        """Logarithms of the free numbers; −∞ for a nugget of zero."""
        with np.errstate(divide="ignore"):
            return np.log([free.value for free in self.free])

    def at(self, theta):
        """The same model with other free numbers."""
        values = iter(np.exp(np.asarray(theta, float)).tolist())
        cov = _replaced(self.cov, self.kinds, values)
        return replace(self, cov=cov, nugget=next(values) if self.error_is_free else self.nugget)

    def scaled(self, factor, lengths=1.0):
        """All free variances times `factor`, all free length scales times `lengths`."""
        shift = {"variance": np.log(factor), "nugget": np.log(factor), "length_scale": np.log(lengths), "smoothness": 0}
        return self.at(self.theta + [shift[free.kind] for free in self.free])

    def started(self, factor, lengths, nugget):
        """As scaled, the nuggets but set to their share of `nugget`."""
        free, own = self.free, self.scaled(factor, lengths).theta
        nuggets = np.array([one.kind == "nugget" for one in free])
        with np.errstate(divide="ignore"):
            return self.at(np.where(nuggets, np.log(nugget / max(1, nuggets.sum())), own))

    def is_itself(self, derivative):
        """Whether a derivative is the covariance, nugget left out: that by the logarithm of the only variance."""
        return derivative == Smooth(self.cov)

    def derivatives(self):
        """∂K/∂θ_j of all j: (covariance-like function or None for zero, derivative of the measurement error)."""
        theta, total = self.theta, self.cov.variance_at_zero
        for j, free in enumerate(self.free):
            step = np.zeros(len(theta))
            step[j] = STEP
            if self.error_is_free and j == len(theta) - 1:
                yield None, self.nugget
                continue
            higher, lower = self.at(theta + step).cov, self.at(theta - step).cov
            if free.kind == "nugget":
                yield Nugget((higher.nugget - lower.nugget) / (2 * STEP)), 0.0
            elif free.kind == "variance" and np.isclose(higher.variance_at_zero, np.exp(STEP) * total, rtol=1e-12):
                yield Smooth(self.cov), 0.0
            else:
                yield Difference(higher, lower, 2 * STEP), 0.0


def _numbers(cov, kinds, path=""):
    """The free numbers of a covariance, in the order of its tree. Of a product only the first factor has a variance."""
    if isinstance(cov, OnSphere):
        yield from _numbers(cov.covariance, kinds, path)
    elif isinstance(cov, (Sum, Product)):
        for i, term in enumerate(cov.terms):
            yield from _numbers(term, _kinds_of_term(cov, i, kinds), f"{path}terms[{i}].")
    elif isinstance(cov, Nugget):
        if "nugget" in kinds:
            yield Free("nugget", f"{path}nugget", cov.variance)
    elif isinstance(cov, (Radial, Constant)):
        for kind in ("variance", "length_scale", "smoothness"):
            if kind in kinds and hasattr(cov, kind):
                value = getattr(cov, kind)
                several = isinstance(value, tuple)
                for k, number in enumerate(value if several else [value]):
                    yield Free(kind, f"{path}{kind}[{k}]" if several else f"{path}{kind}", number)


def _kinds_of_term(cov, i, kinds):
    return [kind for kind in kinds if kind != "variance" or i == 0 or isinstance(cov, Sum)]


def _replaced(cov, kinds, values):
    """The covariance with its free numbers taken from the iterator, in the order of `_numbers`."""
    if isinstance(cov, OnSphere):
        return replace(cov, covariance=_replaced(cov.covariance, kinds, values))
    if isinstance(cov, (Sum, Product)):
        terms = enumerate(cov.terms)
        return replace(cov, terms=tuple(_replaced(t, _kinds_of_term(cov, i, kinds), values) for i, t in terms))
    if isinstance(cov, Nugget):
        return Nugget(next(values)) if "nugget" in kinds else cov
    if not isinstance(cov, (Radial, Constant)):
        return cov
    new = {}
    for kind in ("variance", "length_scale", "smoothness"):
        if kind in kinds and hasattr(cov, kind):
            old = getattr(cov, kind)
            new[kind] = tuple(next(values) for _ in old) if isinstance(old, tuple) else next(values)
    return replace(cov, **new)


@dataclass(frozen=True)
class Difference(Covariance):
    """(f − g)/divisor of two covariances in one space: symmetric and stationary, not positive definite."""

    f: Covariance
    g: Covariance
    divisor: float

    @property
    def variance_at_zero(self):
        return (self.f.variance_at_zero - self.g.variance_at_zero) / self.divisor

    @property
    def nugget(self):
        return (self.f.nugget - self.g.nugget) / self.divisor

    @property
    def dimension(self):
        return self.f.dimension

    @property
    def embedding(self):
        return self.f.embedding

    @property
    def units(self):
        return self.f.units

    def in_units(self, units):
        return replace(self, f=self.f.in_units(units), g=self.g.in_units(units))

    def evaluate(self, x, y, out):
        self.f.evaluate(x, y, out)
        other = out.copy()
        self.g.evaluate(x, y, other)
        out -= other
        out /= self.divisor


@dataclass(frozen=True)
class Smooth(Covariance):
    """A covariance without its nugget."""

    cov: Covariance
    nugget = 0.0

    @property
    def variance_at_zero(self):
        return self.cov.variance_at_zero

    @property
    def dimension(self):
        return self.cov.dimension

    @property
    def embedding(self):
        return self.cov.embedding

    @property
    def units(self):
        return self.cov.units

    def in_units(self, units):
        return replace(self, cov=self.cov.in_units(units))

    def evaluate(self, x, y, out):
        self.cov.evaluate(x, y, out)


def checked_kinds(names):
    """Some of NAMES as a tuple; ValueError for others."""
    kinds = (names,) if isinstance(names, str) else tuple(names)
    unknown = [kind for kind in kinds if kind not in NAMES]
    if unknown or not kinds:
        raise ValueError(f"parameters: expected some of {', '.join(NAMES)}, got {names!r}")
    return kinds
