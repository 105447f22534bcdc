"""Derivatives of covariances by their parameters, as covariance-like functions.

    (f − g)/divisor          f without its nugget
    Σ_k (B_k ρ_k − C_k σ_k)/divisor = Σ_k ((B_k − C_k)/divisor ρ_k + C_k (ρ_k − σ_k)/divisor)

They are evaluated, or become an H²-matrix, as a covariance does: symmetric, not positive definite. Those of several
variables become H²-matrices of their structures, where nothing is lost to the difference of equal ones.
Reference: Nocedal & Wright (2006), Numerical optimization, section 8.1, on central differences.
"""

from dataclasses import dataclass, replace

from h2gpu.covariance import Covariance
from h2gpu.covariance.functions import Radial, squared_distances
from h2gpu.covariance.models.variables import structures_of


class Alike(Covariance):
    """What lives in the space of another covariance, `of`, and differs from it in its values alone."""

    @property
    def of(self):
        """The other covariance."""
        raise NotImplementedError

    @property
    def dimension(self):
        return self.of.dimension

    @property
    def embedding(self):
        return self.of.embedding

    @property
    def units(self):
        return self.of.units

    @property
    def kinks(self):
        return self.of.kinks

    @property
    def variables(self):
        return self.of.variables

    @property
    def frame(self):
        return self.of.frame


@dataclass(frozen=True)
class Difference(Alike):
    """(f − g)/divisor of two covariances in one space: symmetric, not positive definite."""

    f: Covariance
    g: Covariance
    divisor: float

    @property
    def of(self):
        return self.f

    @property
    def variance_at_zero(self):
        return (self.f.variance_at_zero - self.g.variance_at_zero) / self.divisor

    def variances(self, x):
        return (self.f.variances(x) - self.g.variances(x)) / self.divisor

    @property
    def nugget(self):
        return (self.f.nugget - self.g.nugget) / self.divisor

    @property
    def kinks(self):
        return self.f.kinks + self.g.kinks

    def in_frame(self, frame):
        return replace(self, f=self.f.in_frame(frame), g=self.g.in_frame(frame))

    def in_units(self, units):
        return replace(self, f=self.f.in_units(units), g=self.g.in_units(units))

    @property
    def structures(self):
        """(B, ρ) of several variables, as `OfVariables.structures`."""
        found = []
        for (B, rho), (C, other) in zip(structures_of(self.f), structures_of(self.g)):
            if (B != C).any():
                found.append(((B - C) / self.divisor, rho))
            if rho != other:
                found.append((C, Difference(rho, other, self.divisor)))
        return tuple(found)

    def evaluate(self, x, y, out):
        if all(isinstance(cov, Radial) and cov.dimension is None for cov in (self.f, self.g)):
            squared_distances(x, y, out)  # once
            other = out.copy()
            self.f.of_squares(out)
            self.g.of_squares(other)
        else:
            self.f.evaluate(x, y, out)
            other = out.copy()
            self.g.evaluate(x, y, other)
        out -= other
        out /= self.divisor


@dataclass(frozen=True)
class Smooth(Alike):
    """A covariance without its nugget."""

    cov: Covariance
    nugget = 0.0

    @property
    def of(self):
        return self.cov

    @property
    def variance_at_zero(self):
        return self.cov.variance_at_zero

    def variances(self, x):
        return self.cov.variances(x)

    def in_frame(self, frame):
        return replace(self, cov=self.cov.in_frame(frame))

    def in_units(self, units):
        return replace(self, cov=self.cov.in_units(units))

    def evaluate(self, x, y, out):
        self.cov.evaluate(x, y, out)
