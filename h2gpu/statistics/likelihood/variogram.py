"""The empirical variogram of some pairs of sites, and parameters read from it to start an estimation.

    γ(h) = ½ E (Z(x) − Z(x + h))² = nugget + σ² (1 − ρ(h)),   ρ the correlation of the model, its lengths stretched by c

For each c of a grid nugget ≥ 0 and σ² ≥ 0 are a weighted least-squares fit; the best c wins. Pairs: random ones, and of
random sites with their nearest neighbours, in which the nugget shows.

Reference: Cressie (1985), Fitting variogram models by weighted least squares.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from h2gpu.arrays import to_host
from h2gpu.covariance.sites import Sites
from h2gpu.statistics.variography.pairs import with_nearest

SITES, NEAREST, RANDOM = 2000, 10, 40000  # sites drawn, their neighbours, random pairs
BINS = 24
STRETCHES = 48
SMALLEST_NUGGET = 1e-3  # of the variance, to start from: the logarithm of zero is nowhere
HARDLY = 0.1  # of the nugget: a variance below has hardly been seen, nor its length scale
FURTHER = 4  # starts then, of length scales from the distance of neighbours to that of any two sites


@dataclass(frozen=True, eq=False)
class Variogram:
    """Means over bins of distances, ascending.

    distance   (bins,) mean distance
    value      (bins,) mean of ½ (y_i − y_j)²
    count      (bins,) pairs
    pairs      (2, pairs) sites of all pairs
    bins       (pairs,) bin of each
    """

    distance: np.ndarray
    value: np.ndarray
    count: np.ndarray
    pairs: np.ndarray
    bins: np.ndarray

    def means(self, values):
        """(bins,) means of a number a pair."""
        return np.bincount(self.bins, values, len(self.count)) / self.count


def empirical_variogram(x, y, random_state=0):
    """The Variogram of values y (n,) at different points x (n, d), both on the host; n ≥ 2."""
    rng, n = np.random.default_rng(random_state), len(x)
    some = rng.permutation(n)[:SITES]
    pairs = np.stack(with_nearest(x, some, NEAREST))
    drawn = rng.integers(0, n, (2, RANDOM))
    pairs = np.concatenate([pairs, drawn[:, drawn[0] != drawn[1]]], axis=1)
    r = np.linalg.norm(x[pairs[0]] - x[pairs[1]], axis=1)
    edges = np.unique(np.quantile(r, np.linspace(0, 1, BINS + 1)))
    bins = np.clip(np.searchsorted(edges, r, side="right") - 1, 0, max(0, len(edges) - 2))
    used, bins = np.unique(bins, return_inverse=True)
    count = np.bincount(bins, minlength=len(used))
    squares = 0.5 * (y[pairs[0]] - y[pairs[1]]) ** 2
    return Variogram(np.bincount(bins, r) / count, np.bincount(bins, squares) / count, count, pairs, bins)


def starts_from_variogram(model, sites, y, random_state=0):
    """Models to start from: the one whose variance, length scales and nugget fit the empirical variogram of residuals
    y (n,); and where hardly more than a nugget is seen there, others of various length scales, half of it nugget."""
    x = Sites.of(to_host(sites), model.cov).points
    gamma = empirical_variogram(x, to_host(y), random_state)
    weights = np.sqrt(gamma.count) / np.maximum(gamma.value, gamma.value.max() * 1e-6)
    best = None
    for stretch in _stretches(model, gamma):
        cov = model.scaled(1.0, stretch).cov.placed(*model.cov.placement)
        rho = cov.values(x[gamma.pairs[0]], x[gamma.pairs[1]]) / cov.variance_at_zero
        basis = np.stack([np.ones(len(gamma.value)), 1 - gamma.means(rho)], axis=1)
        (nugget, variance), residual = nnls(basis * weights[:, None], gamma.value * weights)
        if variance > 0 and (best is None or residual < best[0]):
            best = residual, stretch, variance, nugget
    found, half = [], 0.5 * float(gamma.value @ gamma.count / gamma.count.sum())
    if best is not None:
        found.append((best[1], best[2], max(best[3], SMALLEST_NUGGET * best[2])))
    if best is None or best[2] < HARDLY * best[3]:
        found += [(stretch, half, half) for stretch in _stretches(model, gamma, FURTHER, 1.0, 0.5)]
    unit = model.cov.variance_at_zero
    return [model.started(variance / unit, stretch, nugget) for stretch, variance, nugget in found]


def _stretches(model, gamma, count=STRETCHES, below=0.3, above=2.0):
    """Factors of the length scales to try: to lengths from `below` the shortest distance to `above` the longest."""
    lengths = [free.value for free in model.free if free.kind == "length_scale"]
    if not lengths:
        return [1.0]
    own = float(np.exp(np.log(lengths).mean()))
    positive = gamma.distance[gamma.distance > 0]
    return np.geomspace(below * positive[0], above * positive[-1], count) / own
