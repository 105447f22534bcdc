"""The empirical variogram of sites in space and time, in cells of distance and lag.

    γ(h, u) = ½ E (Z(x, t) − Z(x + h, t + u))²

Cells follow the quantiles of each, so that they do not depend on what a unit of time is in space. Pairs: random ones,
and of random sites with those nearest in space, in time, and in both.

Reference: Cressie & Wikle (2011), Statistics for spatio-temporal data, section 4.2.
"""

import itertools

import numpy as np

from h2gpu.statistics.likelihood.variogram import Variogram
from h2gpu.statistics.variography.pairs import with_nearest

SITES, NEAREST, RANDOM = 700, 8, 10000  # sites drawn, their neighbours of each kind, random pairs
CELLS = 9  # along distance and along lag
STRETCHES = 12  # of lengths, and of times


def variogram_in_time(x, y, random_state=0):
    """The Variogram of values y (n,) at different points x (n, d), the last coordinate time; its distances are
    (cells, 2): in space, and in time."""
    rng, n = np.random.default_rng(random_state), len(x)
    some = rng.permutation(n)[:SITES]
    spread = np.maximum(x.std(axis=0), 1e-300)
    near = [with_nearest(part, some, NEAREST) for part in (x[:, :-1], x[:, -1:], x / spread)]
    pairs = np.concatenate([rng.integers(0, n, (2, RANDOM)), *map(np.stack, near)], axis=1)
    pairs = pairs[:, pairs[0] != pairs[1]]
    apart = np.stack([np.linalg.norm(np.diff(x[pairs, :-1], axis=0)[0], axis=1), abs(np.diff(x[pairs, -1], axis=0)[0])])
    cells = np.stack([_cells(part) for part in apart])
    _, bins = np.unique(cells[0] * CELLS + cells[1], return_inverse=True)
    count = np.bincount(bins)
    distance = np.stack([np.bincount(bins, part) / count for part in apart], axis=1)
    squares = 0.5 * (y[pairs[0]] - y[pairs[1]]) ** 2
    return Variogram(distance, np.bincount(bins, squares) / count, count, pairs, bins)


def stretches_in_time(model, gamma, count=None):
    """Pairs of factors of the length scales and of the times to try: all of a grid, or `count` on its diagonal."""
    units = model.cov.placement[1]
    own = {"length_scale": 1.0, "time_scale": 1.0 if units is None else units[-1]}
    grids = []
    for k, (kind, unit) in enumerate(own.items()):
        free = [one.value / unit for one in model.free if one.kind == kind]
        seen = gamma.distance[gamma.distance[:, k] > 0, k]
        if free and len(seen):
            grid = np.geomspace(0.3 * seen.min(), 2 * seen.max(), count or STRETCHES)
            grids.append(grid / np.exp(np.log(free).mean()))
        else:
            grids.append(np.ones(count or 1))
    return list(zip(*grids)) if count else list(itertools.product(*grids))


def _cells(values):
    """The cell of each value, by quantiles; equal values share one."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, CELLS + 1)))
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, max(0, len(edges) - 2))
