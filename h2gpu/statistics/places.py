"""Observations → places: repeated sites become one, nothing lost.

    y_i = Z(x) + ε_i, i = 1 … k, at one place x:     ȳ = Σ v_i y_i / Σ v_i has noise τ²/Σ v_i,  var ε_i = τ²/v_i

The means say all about Z; the spread around them, Σ v_i (y_i − ȳ)², says something about τ² alone.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import array_module, to_host

ROUNDING = 1e-10  # of the largest value: repeated observations that differ by less agree


@dataclass(frozen=True, eq=False)
class Places:
    """What was observed, place by place.

    sites        (places, dim) coordinates, all different
    values       (places,) weighted means
    weights      (places,) sums of the observations' weights, on the host
    first        (places,) an observation of each place
    repeats      observations beyond the first of a place
    spread       Σ weight (observation − mean of its place)²
    log_weights  Σ over observations − Σ over places of the logarithms of their weights
    """

    sites: object
    values: object
    weights: np.ndarray
    first: np.ndarray
    repeats: int
    spread: float
    log_weights: float

    def noise(self, nugget):
        """Variance of the measurement errors of the means: one number where all are equal, else (places,)."""
        equal = nugget == 0 or bool((self.weights == self.weights[0]).all())
        return nugget / float(self.weights[0]) if equal else nugget / self.weights

    def log_likelihood(self, nugget):
        """Logarithm of the density of the observations given the means of their places; ValueError where it is zero."""
        if not self.repeats:
            return 0.0
        if nugget == 0:
            self.check_agreement()
            return 0.0
        constant = self.log_weights - self.repeats * float(np.log(2 * np.pi * nugget))
        return 0.5 * (constant - self.spread / nugget)

    def check_agreement(self):
        """ValueError unless repeated observations agree, as they must without measurement error."""
        scale = float(abs(self.values).max()) * ROUNDING
        if self.spread > self.weights.sum() * scale**2:
            raise ValueError(
                f"y: expected one value a site where nugget is 0, got sites observed {self.repeats} times more with "
                "different values; give nugget > 0 (the variance of the measurement error) or average them"
            )


def places_of(X, y, weights):
    """The Places of observations y (n,) at X (n, dim); weights (n,) on the host: var ε_i = nugget/weights_i."""
    xp, n = array_module(X), len(y)
    host = to_host(X)
    _, first, place = np.unique(host, axis=0, return_index=True, return_inverse=True)
    if len(first) == n:
        return Places(X, y, weights, np.arange(n), 0, 0.0, 0.0)
    rank = np.argsort(np.argsort(first))  # places in the order in which they come
    first, place = np.sort(first), rank[place.ravel()]
    values, total = to_host(y), np.bincount(place, weights)
    means = np.bincount(place, weights * values) / total
    spread = float(weights @ (values - means[place]) ** 2)
    logs = float(np.log(weights).sum() - np.log(total).sum())
    return Places(X[xp.asarray(first)], xp.asarray(means), total, first, n - len(first), spread, logs)
