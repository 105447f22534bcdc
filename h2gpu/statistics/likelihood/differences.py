"""Derivatives of covariances by their parameters, as covariance-like functions.

    (f − g)/divisor          f without its nugget

They are evaluated, or become an H²-matrix, as a covariance does: symmetric and stationary, not positive definite.
Reference: Nocedal & Wright (2006), Numerical optimization, section 8.1, on central differences.
"""

from dataclasses import dataclass, replace

from h2gpu.covariance import Covariance


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

    @property
    def kinks(self):
        return self.f.kinks + self.g.kinks

    @property
    def frame(self):
        return self.f.frame

    def in_frame(self, frame):
        return replace(self, f=self.f.in_frame(frame), g=self.g.in_frame(frame))

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

    @property
    def kinks(self):
        return self.cov.kinks

    @property
    def frame(self):
        return self.cov.frame

    def in_frame(self, frame):
        return replace(self, cov=self.cov.in_frame(frame))

    def in_units(self, units):
        return replace(self, cov=self.cov.in_units(units))

    def evaluate(self, x, y, out):
        self.cov.evaluate(x, y, out)
