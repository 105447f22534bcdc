"""Distributions of an observation y given the linear predictor η at its place.

    poisson     y ~ Poisson(e μ),  log μ = η            e exposure
    binomial    y ~ Binomial(N, π), logit π = η         N trials
    gamma       y ~ Gamma(shape a, mean μ), log μ = η
    student-t   y = η + scale · t,  t of df degrees of freedom

g = ∂ log p/∂η, and weights w > 0: −∂²log p/∂η² where it is positive always; of Student's t, which is not
log-concave, Fisher's information in its place (Hartmann & Vanhatalo 2019, Laplace approximation and natural gradient).
All functions are elementwise on the host.

Reference: McCullagh & Nelder (1989), Generalized linear models.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
from scipy import special, stats

LEAST = 1e-10  # weight of an observation, at least: none is left out wholly
FARTHEST = 300.0  # of a linear predictor in an exponential


def _exp(eta):
    return np.exp(np.clip(eta, -FARTHEST, FARTHEST))


class Likelihood:
    """What all have in common: numbers of their own that can be estimated, by name."""

    discrete = False
    log_concave = True  # in η: one mode
    link = "log"

    @property
    def names(self):
        """Of the numbers that the likelihood has besides η."""
        return [field.name for field in fields(self)]

    @property
    def theta(self):
        """Their logarithms."""
        return np.log([getattr(self, name) for name in self.names])

    def at(self, theta):
        """The same likelihood with other numbers, from their logarithms."""
        return replace(self, **dict(zip(self.names, np.exp(theta).tolist())))

    def response(self, eta, size):
        """Mean of y given η."""
        return size * _exp(eta)

    def checked(self, y, size):
        """y (n,) if it is possible; ValueError otherwise."""
        return y


def _whole(name, y, size):
    if (y < 0).any() or (y != np.floor(y)).any():
        bad = y[(y < 0) | (y != np.floor(y))][0]
        raise ValueError(f"y: expected whole numbers ≥ 0 for likelihood={name!r}, got {bad:g}; y is a count")


@dataclass(frozen=True)
class Poisson(Likelihood):
    """log p = y (η + log e) − e exp η − log y!"""

    discrete = True

    def checked(self, y, size):
        _whole("poisson", y, size)
        return y

    def start(self, y, size):
        return np.log((y + 0.5) / size)

    def log_density(self, y, eta, size):
        return y * (eta + np.log(size)) - size * _exp(eta) - special.gammaln(y + 1)

    def slope(self, y, eta, size):
        return y - size * _exp(eta)

    def weight(self, y, eta, size):
        return np.maximum(size * _exp(eta), LEAST)

    def weight_slope(self, y, eta, size):
        return size * _exp(eta)

    def variance(self, eta, size):
        return size * _exp(eta)

    def cdf(self, y, eta, size):
        return special.pdtr(np.floor(y), size * _exp(eta))

    def smooth_cdf(self, y, eta, size):
        return special.gammaincc(y + 1, size * _exp(eta))

    def deviance(self, y, mean, size):
        return 2 * (special.xlogy(y, y / mean) - (y - mean))


@dataclass(frozen=True)
class Binomial(Likelihood):
    """log p = y η − N log(1 + exp η) + log (N over y)"""

    discrete = True
    link = "logit"

    def checked(self, y, size):
        _whole("binomial", y, size)
        if (y > size).any():
            i = int(np.argmax(y > size))
            raise ValueError(
                f"y: expected at most as many successes as trials, got {y[i]:g} of {size[i]:g} in row {i}; name the "
                "column of trials, trials=…, or give successes of one trial, 0 and 1"
            )
        return y

    def start(self, y, size):
        return np.log((y + 0.5) / (size - y + 0.5))

    def response(self, eta, size):
        return size * special.expit(eta)

    def log_density(self, y, eta, size):
        choose = -special.betaln(size - y + 1, y + 1) - np.log1p(size)
        return y * eta - size * np.logaddexp(0, eta) + choose

    def slope(self, y, eta, size):
        return y - size * special.expit(eta)

    def weight(self, y, eta, size):
        return np.maximum(self.variance(eta, size), LEAST)

    def weight_slope(self, y, eta, size):
        return self.variance(eta, size) * (1 - 2 * special.expit(eta))

    def variance(self, eta, size):
        return size * special.expit(eta) * special.expit(-eta)

    def cdf(self, y, eta, size):
        k = np.clip(np.floor(y), 0, size - 1)
        below = special.betainc(size - k, k + 1, special.expit(-eta))
        return np.where(y < 0, 0.0, np.where(y >= size, 1.0, below))

    def smooth_cdf(self, y, eta, size):
        left = np.maximum(size - y, 1e-300)
        return np.where(y >= size, 1.0, special.betainc(left, y + 1, special.expit(-eta)))

    def deviance(self, y, mean, size):
        return 2 * (special.xlogy(y, y / mean) + special.xlogy(size - y, (size - y) / (size - mean)))


@dataclass(frozen=True)
class Gamma(Likelihood):
    """log p = a log a − a η − a y exp(−η) + (a − 1) log y − log Γ(a)"""

    shape: float = 1.0

    def checked(self, y, size):
        if (y <= 0).any():
            raise ValueError(
                f'y: expected numbers above 0 for likelihood="gamma", got {y.min():g}; leave those out, or take '
                "another likelihood"
            )
        return y

    def start(self, y, size):
        return np.log(y)

    def log_density(self, y, eta, size):
        a = self.shape
        return a * np.log(a) - a * eta - a * y * _exp(-eta) + (a - 1) * np.log(y) - special.gammaln(a)

    def slope(self, y, eta, size):
        return self.shape * (y * _exp(-eta) - 1)

    def weight(self, y, eta, size):
        return np.maximum(self.shape * y * _exp(-eta), LEAST)

    def weight_slope(self, y, eta, size):
        return -self.shape * y * _exp(-eta)

    def variance(self, eta, size):
        return _exp(2 * eta) / self.shape

    def cdf(self, y, eta, size):
        return special.gammainc(self.shape, np.maximum(self.shape * y * _exp(-eta), 0))

    def deviance(self, y, mean, size):
        return 2 * ((y - mean) / mean - np.log(y / mean))


@dataclass(frozen=True)
class StudentT(Likelihood):
    """y = η + scale · t; weights are Fisher's information, (df + 1)/((df + 3) scale²)."""

    scale: float = 1.0
    df: float = 4.0
    log_concave = False
    link = "identity"

    def start(self, y, size):
        return y

    def response(self, eta, size):
        return eta

    def log_density(self, y, eta, size):
        return stats.t.logpdf(y, self.df, eta, self.scale)

    def slope(self, y, eta, size):
        r = y - eta
        return (self.df + 1) * r / (self.df * self.scale**2 + r**2)

    def weight(self, y, eta, size):
        return np.full(np.shape(eta), (self.df + 1) / ((self.df + 3) * self.scale**2))

    def weight_slope(self, y, eta, size):
        return np.zeros(np.shape(eta))

    def variance(self, eta, size):
        known = self.scale**2 * self.df / (self.df - 2) if self.df > 2 else np.inf
        return np.full(np.shape(eta), known)

    def cdf(self, y, eta, size):
        return special.stdtr(self.df, (y - eta) / self.scale)

    def deviance(self, y, mean, size):
        return (self.df + 1) * np.log1p(((y - mean) / self.scale) ** 2 / self.df)


LIKELIHOODS = {"poisson": Poisson, "binomial": Binomial, "gamma": Gamma, "student-t": StudentT}
