"""The parameters of a covariance that are to be estimated, as a vector of logarithms.

    θ = (log variance, log length scale, …, log nugget),     ∂K/∂θ_j ≈ (K(θ + h e_j) − K(θ − h e_j)) / 2h

Every covariance is a tree of frozen dataclasses; its free numbers are read and replaced in the order of the tree. The
derivative is a covariance-like function itself (`differences`).
"""

from dataclasses import dataclass, replace

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.covariance import (
    Covariance,
    Expression,
    Gneiting,
    Modulated,
    Nugget,
    OnSphere,
    Product,
    SpaceTime,
    Sum,
    VaryingLength,
)
from h2gpu.covariance.models.variables import OfVariables, VariableNugget
from h2gpu.statistics.likelihood.differences import Difference, Smooth
from h2gpu.texts import brief

ALL = "all"  # every number that a covariance has
NAMES = (
    *("variance", "length_scale", "rotation", "time_scale", "nugget", "number", "partial", "slopes", "length_slopes"),
    *("smoothness", "exponent", "alpha", "time_exponent", "interaction"),
)
USUAL = NAMES[:9]
SLOPES = "slopes", "length_slopes"
ITSELF = np.positive, np.positive
SCALES = dict.fromkeys(("rotation", *SLOPES), ITSELF) | {"partial": (np.arctanh, np.tanh)}  # to θ and back; others: log
LOGARITHM = np.log, np.exp
STEP = 3e-4  # h: differences are right to 1e-7, and rounding is amplified three thousand times, not more


@dataclass(frozen=True)
class Free:
    """One free number: kind (of NAMES; "number" is one of an Expression that is no variance and no length scale), name
    as users read it, value; unit: θ of a slope is slope · unit."""

    kind: str
    name: str
    value: float
    unit: float = 1.0

    @property
    def theta(self):
        """The number's entry of θ."""
        return SCALES.get(self.kind, LOGARITHM)[0](self.value * self.unit)

    def at(self, theta):
        """The number on its own scale, from an entry of θ or an array of them."""
        return SCALES.get(self.kind, LOGARITHM)[1](theta) / self.unit

    @property
    def rate(self):
        """What turns standard errors as estimates tell them into the number's own: its derivative by θ."""
        return {"partial": 1 - self.value**2}.get(self.kind, self.value if self.logarithmic else 1.0)

    @property
    def logarithmic(self):
        """Whether θ is its logarithm."""
        return self.kind not in SCALES


@dataclass(frozen=True, eq=False)
class Model:
    """A covariance, the variance of the measurement error, and which of their numbers are free.

    kinds   some of NAMES, or names of numbers of an Expression; "nugget" means the Nugget terms of the covariance where
            it has any, else the measurement error: one sees both only where sites repeat
    extents (dim,) of the sites: θ of a slope is the change along one, whatever the coordinates' unit; None: slopes
            as they are
    """

    cov: Covariance
    nugget: float
    kinds: tuple = USUAL
    extents: tuple | None = None

    @property
    def free(self):
        """The free numbers, in the order of the vector θ."""
        found = list(_numbers(self.cov, self.kinds))
        if self.extents is not None:
            found = [replace(free, unit=self._unit(free)) for free in found]
        return [*found, Free("nugget", "nugget", self.nugget)] if self.error_is_free else found

    def within(self, sites):
        """The same with the extents of sites (n, dim)."""
        if not any(free.kind in SLOPES for free in self.free):
            return self
        return replace(self, extents=tuple(float(e) or 1.0 for e in np.ptp(to_host(sites), axis=0)))

    def _unit(self, free):
        return self.extents[int(free.name.rpartition("[")[2][:-1])] if free.kind in SLOPES else 1.0

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
        """Logarithms of the free numbers, −∞ for a nugget of zero; angles and slopes as they are, artanh of partial
        correlations."""
        with np.errstate(divide="ignore"):
            return np.array([free.theta for free in self.free])

    def at(self, theta):
        """The same model with other free numbers."""
        values = iter([float(free.at(t)) for t, free in zip(np.asarray(theta, float), self.free)])
        cov = _replaced(self.cov, self.kinds, values)
        return replace(self, cov=cov, nugget=next(values) if self.error_is_free else self.nugget)

    def scaled(self, factor, lengths=1.0, times=1.0):
        """All free variances times `factor`, all free length scales times `lengths`, those of time times `times`."""
        by = {"variance": factor, "nugget": factor, "length_scale": lengths, "time_scale": times}
        return self.at(self.theta + [np.log(by.get(free.kind, 1.0)) for free in self.free])

    def started(self, factor, lengths, nugget, times=1.0):
        """As scaled, the nuggets but set to their share of `nugget`."""
        free, own = self.free, self.scaled(factor, lengths, times).theta
        nuggets = np.array([one.kind == "nugget" for one in free])
        with np.errstate(divide="ignore"):
            return self.at(np.where(nuggets, np.log(nugget / max(1, nuggets.sum())), own))

    def turned(self, angle, ratio):
        """Other axes to start from: first angles `angle`, first length scales times `ratio`, others divided."""
        theta, free = self.theta.copy(), self.free
        for j, one in enumerate(free):
            first = "[" not in one.name or one.name.endswith("[0]")
            if one.kind == "rotation" and first:
                theta[j] = angle
            elif one.kind == "length_scale" and "[" in one.name:
                theta[j] += np.log(ratio) if first else -np.log(ratio)
        return self.at(theta)

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
            if free.kind == "nugget" and higher.nugget != lower.nugget:
                yield Nugget((higher.nugget - lower.nugget) / (2 * STEP)), 0.0
            elif free.kind == "variance" and np.isclose(higher.variance_at_zero, np.exp(STEP) * total, rtol=1e-12):
                yield Smooth(self.cov), 0.0
            else:
                yield Difference(higher, lower, 2 * STEP), 0.0


def _numbers(cov, kinds, path=""):
    """The free numbers of a covariance, in the order of its tree. Of a product only the first factor has a variance."""
    if isinstance(cov, (OnSphere, Modulated, VaryingLength)):
        yield from _numbers(cov.covariance, kinds, path)
        for kind in _estimated(cov, kinds):
            yield from (Free(kind, f"{path}{kind}[{k}]", b) for k, b in enumerate(getattr(cov, kind)))
    elif isinstance(cov, (Sum, Product)):
        for i, term in enumerate(cov.terms):
            yield from _numbers(term, _kinds_of_term(cov, i, kinds), f"{path}terms[{i}].")
    elif isinstance(cov, (SpaceTime, Gneiting)):
        for field, own in _fields(cov, kinds):
            for free in _numbers(getattr(cov, field), own, f"{path}{field}."):
                in_time = field == "time" and free.kind == "length_scale"
                yield replace(free, kind="time_scale") if in_time else free
        yield from (Free(kind, f"{path}{kind}", getattr(cov, kind)) for kind in _estimated(cov, kinds))
    elif isinstance(cov, VariableNugget):
        if "nugget" in kinds:
            yield from (Free("nugget", f"nugget[{i}]", v) for i, v in enumerate(cov.variance))
    elif isinstance(cov, OfVariables):
        yield from (Free(kind, f"{path}{name}", value) for kind, name, value in cov.numbers if kind in kinds)
        for k, part in enumerate(cov.parts):
            yield from _numbers(part, _without_variance(kinds), f"{path}parts[{k}].")
    elif isinstance(cov, Nugget):
        if "nugget" in kinds:
            yield Free("nugget", f"{path}nugget", cov.variance)
    elif isinstance(cov, Expression):
        yield from (Free(role, f"{path}{name}", value) for name, role, value in _own_numbers(cov, kinds))
    else:
        for kind in _estimated(cov, kinds):
            value = getattr(cov, kind)
            several = isinstance(value, tuple)
            for k, number in enumerate(value if several else [value]):
                yield Free(kind, f"{path}{kind}[{k}]" if several else f"{path}{kind}", number)


def _estimated(cov, kinds):
    """The attributes of a covariance that are free."""
    return [kind for kind in cov.estimated if kind in kinds and getattr(cov, kind) is not None]


def _without_variance(kinds):
    return [kind for kind in kinds if kind != "variance"]


def _fields(cov, kinds):
    """(field, kinds) of the covariances that one of space and time is made of: the variance is that of space."""
    yield "space", kinds
    if isinstance(cov, SpaceTime):
        renamed = {"length_scale": None, "variance": None, "time_scale": "length_scale"}
        yield "time", [kind for kind in (renamed.get(kind, kind) for kind in kinds) if kind]


def _own_numbers(cov, kinds):
    """(name, role, value) of the numbers of an Expression that are wanted, by their names or roles."""
    for name, value in cov.numbers:
        role = cov.role(name)
        if name in kinds or role in kinds:
            if value <= 0:
                raise ValueError(f"{name}: expected a number above 0 to be estimated, got {value}; rewrite {cov!r}")
            yield name, role, value


def _kinds_of_term(cov, i, kinds):
    return [kind for kind in kinds if kind != "variance" or i == 0 or isinstance(cov, Sum)]


def _replaced(cov, kinds, values):
    """The covariance with its free numbers taken from the iterator, in the order of `_numbers`."""
    if isinstance(cov, (OnSphere, Modulated, VaryingLength)):
        new = {"covariance": _replaced(cov.covariance, kinds, values)}
        new |= {kind: tuple(next(values) for _ in getattr(cov, kind)) for kind in _estimated(cov, kinds)}
        return replace(cov, **new)
    if isinstance(cov, (Sum, Product)):
        terms = enumerate(cov.terms)
        return replace(cov, terms=tuple(_replaced(t, _kinds_of_term(cov, i, kinds), values) for i, t in terms))
    if isinstance(cov, VariableNugget):
        return replace(cov, variance=tuple(next(values) for _ in cov.variance)) if "nugget" in kinds else cov
    if isinstance(cov, OfVariables):
        given = [next(values) if kind in kinds else value for kind, _, value in cov.numbers]
        parts = tuple(_replaced(part, _without_variance(kinds), values) for part in cov.parts)
        new = cov.with_numbers(iter(given))
        return replace(new, parts=parts) if parts else new
    if isinstance(cov, Nugget):
        return Nugget(next(values)) if "nugget" in kinds else cov
    if isinstance(cov, Expression):
        return cov.with_numbers(**{name: next(values) for name, _, _ in _own_numbers(cov, kinds)})
    timed = isinstance(cov, (SpaceTime, Gneiting))
    new = {field: _replaced(getattr(cov, field), own, values) for field, own in _fields(cov, kinds)} if timed else {}
    for kind in _estimated(cov, kinds):
        old = getattr(cov, kind)
        new[kind] = tuple(next(values) for _ in old) if isinstance(old, tuple) else next(values)
    return replace(cov, **new)


def kept_shapes(model):
    """(name, value) of numbers that shape the covariance and are not estimated: smoothness, exponent, alpha."""
    shapes = [kind for kind in NAMES if kind not in USUAL and kind not in model.kinds]
    return [(free.name, free.value) for free in _numbers(model.cov, shapes)]


def checked_kinds(names, cov):
    """Some of NAMES, or names of numbers in the covariance, as a tuple; "all": those it has. ValueError for others."""
    if isinstance(names, str) and names == ALL:
        kinds = (*USUAL, *(kind for kind in NAMES if kind not in USUAL))
        return tuple(kind for kind in kinds if kind == "nugget" or any(True for _ in _numbers(cov, (kind,))))
    kinds = (names,) if isinstance(names, str) else tuple(names)
    known = [*NAMES, *dict.fromkeys(_names_in(cov))]
    if not kinds or any(kind not in known for kind in kinds):
        raise ValueError(f"parameters: expected some of {', '.join(known)}, got {brief(names)}")
    return kinds


def _names_in(cov):
    """Names of all numbers of the Expressions in a covariance."""
    if isinstance(cov, Expression):
        yield from (name for name, _ in cov.numbers)
    for part in cov.parts:
        yield from _names_in(part)
