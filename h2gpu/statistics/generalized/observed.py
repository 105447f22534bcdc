"""Observations by place: what Laplace's approximation asks of them at predictors η (places,).

ℓ(η) = Σ_i log p(y_i | η_place(i)),     g = ∂ℓ/∂η,   W = Σ of the weights,   u = η + g/W  working observations
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import array_module, to_host

STEP = 1e-4  # of the logarithm of a likelihood's number, for central differences of elementwise functions


@dataclass(frozen=True, eq=False)
class Observed:
    """Arrays of observations (n,) are on the host.

    y, size   observed, and exposure or trials
    place     index of its place
    X         (places, features) of the different places
    level     known part of all predictors, which η is free of
    """

    y: np.ndarray
    size: np.ndarray
    place: np.ndarray
    X: object
    level: float = 0.0

    @classmethod
    def of(cls, X, y, size, level=0.0):
        """Observations at X (n, features), those at the very same features at one place."""
        xp, host = array_module(X), to_host(X)
        _, first, place = np.unique(host, axis=0, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        return cls(y, size, rank[place.ravel()], X[xp.asarray(np.sort(first))], level)

    def some(self, places):
        """The observations of some places, (count,) ascending."""
        new = np.full(len(self.X), -1)
        new[places] = np.arange(len(places))
        kept = new[self.place] >= 0
        X = self.X[array_module(self.X).asarray(places)]
        return Observed(self.y[kept], self.size[kept], new[self.place[kept]], X, self.level)

    def summed(self, each):
        """(places,) sums of a number an observation."""
        return np.bincount(self.place, each, len(self.X))

    def start(self, likelihood):
        """(places,) predictors that the observations themselves suggest."""
        each = likelihood.start(self.y, self.size)
        return self.summed(each) / np.bincount(self.place, minlength=len(self.X)) - self.level

    def value(self, likelihood, eta):
        """ℓ."""
        return float(likelihood.log_density(self.y, self.level + eta[self.place], self.size).sum())

    def slope(self, likelihood, eta):
        """g (places,)."""
        return self.summed(likelihood.slope(self.y, self.level + eta[self.place], self.size))

    def weight(self, likelihood, eta):
        """W (places,)."""
        return self.summed(likelihood.weight(self.y, self.level + eta[self.place], self.size))

    def weight_slope(self, likelihood, eta):
        """∂W/∂η (places,)."""
        return self.summed(likelihood.weight_slope(self.y, self.level + eta[self.place], self.size))

    def own_slopes(self, likelihood, eta):
        """∂ℓ, ∂g (places,), ∂W (places,) by the logarithm of each number of the likelihood."""
        for j in range(len(likelihood.names)):
            step = np.zeros(len(likelihood.names))
            step[j] = STEP
            high, low = likelihood.at(likelihood.theta + step), likelihood.at(likelihood.theta - step)
            yield tuple((f(high, eta) - f(low, eta)) / (2 * STEP) for f in (self.value, self.slope, self.weight))
