"""Observations of several variables as one list of sites (x, i), and the trend of each.

    y_k = Z_i(x_k) + ε_k,   E Z_i(x) = f(x)ᵀ β_i          Y (n, p), NaN where a variable was not observed

Reference: Wackernagel (2003), Multivariate geostatistics, chapter 24.
"""

from dataclasses import dataclass, replace

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.statistics.blocks.discretization import check_total
from h2gpu.statistics.places import Places
from h2gpu.statistics.trends import Trend


@dataclass(frozen=True, eq=False)
class Stacked:
    """Sites (N, d + 1) with a variable's index last, values (N,), and of each its row of X and its variable."""

    sites: object
    values: object
    row: np.ndarray
    variable: np.ndarray

    def places(self, nuggets):
        """The `places.Places` whose noise(1) are the variables' nuggets (p,), zeros made the least that counts."""
        least = 1e-12 * float(max(nuggets.max(), 1e-288))
        weights = 1 / np.maximum(nuggets, least)[self.variable]
        return Places(self.sites, self.values, weights, np.arange(len(weights)), 0, 0.0, 0.0)

    def of(self, some):
        """Some of the observations, indices on the host."""
        i = array_module(self.sites).asarray(some)
        return Stacked(self.sites[i], self.values[i], self.row[some], self.variable[some])


def stacked(X, Y):
    """The Stacked of X (n, d) and Y (n, p), variable by variable."""
    xp = array_module(X)
    known = np.asarray(Y.get() if hasattr(Y, "get") else Y)
    variable, row = np.nonzero(np.isfinite(known).T)
    values = xp.asarray(known[row, variable])
    return Stacked(_beside(X[xp.asarray(row)], variable), values, row, variable)


def merged(before, new):
    """X (n, d) and Y (n, p) of both, a site in one row; those of before first.

    Raises ValueError for a variable that both observed at a site.
    """
    (X, Y), (X_new, Y_new) = before, new
    xp, n = array_module(X), len(X)
    _, site = np.unique(to_host(xp.concatenate([X, X_new])), axis=0, return_inverse=True)
    row = np.full(site.max() + 1, -1)
    row[site.ravel()[:n]] = np.arange(n)
    row = row[site.ravel()[n:]]  # of before, of each new one; −1: there is none
    again, others = np.flatnonzero(row >= 0), np.flatnonzero(row < 0)
    Y, at = Y.copy(), xp.asarray(row[again])
    more = Y_new[xp.asarray(again)]
    twice = to_host((xp.isfinite(Y[at]) & xp.isfinite(more)).any(axis=1))
    if twice.any():
        raise ValueError(
            f"Y: expected values of variables that a site lacks, got some observed before at {int(twice.sum())} sites, "
            f"first in row {int(again[np.argmax(twice)])}; make them NaN, or fit their means"
        )
    Y[at] = xp.where(xp.isfinite(more), more, Y[at])
    others = xp.asarray(others)
    return xp.concatenate([X, X_new[others]]), xp.concatenate([Y, Y_new[others]])


def all_variables(X, p):
    """(m p, d + 1) sites of every variable at X (m, d), those of a point together."""
    xp = array_module(X)
    return _beside(xp.repeat(X, p, axis=0), np.tile(np.arange(p), len(X)))


def blocks_of_variables(blocks, p):
    """Each of `Blocks` of rows of X as p of stacked sites, one a variable, those of a block together.

    Raises ValueError for more points than blocks may have.
    """
    check_total(p * len(blocks.weights))
    block = np.repeat(np.arange(len(blocks)), p)
    sizes = np.diff(blocks.start)[block]
    start = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.arange(start[-1]) + np.repeat(blocks.start[block] - start[:-1], sizes)
    points = blocks.points[array_module(blocks.points).asarray(rows)]
    variable = np.repeat(np.tile(np.arange(p), len(blocks)), sizes)
    return replace(blocks, points=_beside(points, variable), weights=blocks.weights[rows], start=start)


def trend_of_variables(trend, p):
    """The Trend of stacked sites that gives each variable coefficients of its own."""

    def columns(sites):
        xp = array_module(sites)
        F, i = trend.columns(sites[:, :-1]), xp.rint(sites[:, -1]).astype(int)
        own = i[:, None] == xp.arange(p)
        return (own[:, :, None] * F[:, None, :]).reshape(len(F), p * F.shape[1])

    return Trend(None if trend.kind is None else columns, [], [])


def _beside(X, variable):
    xp = array_module(X)
    return xp.concatenate([X, xp.asarray(variable, dtype=X.dtype)[:, None]], axis=1)
