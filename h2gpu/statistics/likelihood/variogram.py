"""The empirical variogram of some pairs of sites.

    γ(h) = ½ E (Z(x) − Z(x + h))²

Pairs: random ones, and of random sites with their nearest neighbours, in which the nugget shows.

Reference: Cressie (1985), Fitting variogram models by weighted least squares.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.statistics.variography.pairs import with_nearest

SITES, NEAREST, RANDOM = 2000, 10, 40000  # sites drawn, their neighbours, random pairs
BINS = 24


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
