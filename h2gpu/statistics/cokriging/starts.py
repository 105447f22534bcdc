"""Where the estimation of several variables starts: each by itself, then their correlation.

    variable i alone   σ_i², a_i, nugget_i by maximum likelihood        a = geometric mean
    two variables      correlation of their values where both were observed, at most 0.8

Reference: Goulard & Voltz (1992), Linear coregionalization model, on iterating from a start.
"""

from dataclasses import replace

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.covariance import Coregionalization, Matern
from h2gpu.covariance.models.variables import VariableNugget
from h2gpu.statistics.likelihood.estimation import estimate
from h2gpu.statistics.likelihood.log_likelihood import Data
from h2gpu.statistics.likelihood.parameters import Model
from h2gpu.statistics.places import places_of

SOME = 700  # observations of a variable that tell where to start
MOST = 0.8  # correlation to start from
LEAST = 1e-3  # of a variance: the nugget to start from


def start_of(cov, data, trend, p, random_state=0):
    """(covariance, nuggets (p,)) to start from: `cov` with other variances, correlations and lengths.

    data    `stacking.Stacked`
    trend   of the coordinates
    """
    found = [_alone(cov, data, trend, i, random_state) for i in range(p)]
    variance, length, nugget = np.array(found).T
    R = _correlation(data, p)
    stretch = float(np.exp(np.log(length).mean()))
    if isinstance(cov, Coregionalization):
        B, K = R * np.sqrt(np.outer(variance, variance)), len(cov.parts)
        parts = tuple(replace(part, length_scale=_stretched(part.length_scale, stretch)) for part in cov.parts)
        start = replace(cov, matrices=(B / K,) * K, parts=parts)
    else:
        bare = replace(cov, correlation=np.eye(p))
        start = replace(bare, variance=tuple(variance), length_scale=cov.length_scale * stretch)
        start = replace(start, correlation=_valid(R, start.bounds))
    return start, np.maximum(nugget, LEAST * variance)


def with_nuggets(cov, nuggets):
    """The sum of both, whose parameters are estimated together."""
    return cov + VariableNugget(tuple(nuggets), cov.space_dimension)


def _alone(cov, data, trend, i, random_state):
    """Variance, factor of the length scales, and nugget of variable i by itself."""
    mine = np.flatnonzero(data.variable == i)
    mine = mine[np.random.default_rng(random_state).permutation(len(mine))[:SOME]]
    xp = array_module(data.sites)
    X, y = data.sites[xp.asarray(mine)][:, :-1], data.values[xp.asarray(mine)]
    rho = _own(cov, i)
    usual = float(y.var()) or 1.0, 1.0, 0.1 * float(y.var())
    if len(mine) < 10:
        return usual
    try:
        data = Data(places_of(X, y, np.ones(len(mine))), trend)
        found = estimate(data, Model(rho, 0.0), 30, random_state, tell=False).model
    except (ValueError, np.linalg.LinAlgError):
        return usual
    stretch = np.exp(np.mean(np.log(np.atleast_1d(found.cov.length_scale) / np.atleast_1d(rho.length_scale))))
    return found.cov.variance_at_zero, float(stretch), found.nugget


def _own(cov, i):
    """The correlation of one variable: of the first structure, or Matérn of its smoothness."""
    if isinstance(cov, Coregionalization):
        return cov.parts[0]
    nu = cov.smoothness[i]
    return Matern(1.0, cov.length_scale * (2 * nu) ** 0.5, nu)


def _correlation(data, p):
    """(p, p) correlations of values observed at the same rows, of residuals from their means."""
    y, n = to_host(data.values), data.row.max() + 1
    Y = np.full((n, p), np.nan)
    Y[data.row, data.variable] = y
    Y -= np.nanmean(Y, axis=0)
    R = np.eye(p)
    for i in range(p):
        for j in range(i):
            both = np.isfinite(Y[:, i] * Y[:, j])
            a, b = Y[both, i], Y[both, j]
            size = float(np.sqrt((a @ a) * (b @ b)))
            R[i, j] = R[j, i] = np.clip(a @ b / size, -MOST, MOST) if both.sum() > 2 and size > 0 else 0.0
    return _definite(R)


def _definite(R):
    """R, moved towards the identity until it is positive definite."""
    while np.linalg.eigvalsh(R)[0] < 0.05:
        R = 0.9 * R + 0.1 * np.eye(len(R))
    return R


def _valid(R, bounds):
    """Correlations that the bounds allow."""
    return _definite(np.where(np.eye(len(R)) > 0, 1.0, R)) * bounds


def _stretched(length, factor):
    return tuple(factor * l for l in length) if isinstance(length, tuple) else factor * length
