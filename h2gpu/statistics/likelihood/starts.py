"""Parameters read from the empirical variogram, to start an estimation.

    γ(h) = nugget + σ² (1 − ρ(h)),   ρ the correlation of the model, its lengths stretched by c

For each c of a grid nugget ≥ 0 and σ² ≥ 0 are a weighted least-squares fit; the best c wins. In space and time the grid
is of pairs of factors.

Reference: Cressie (1985), Fitting variogram models by weighted least squares.
"""

import numpy as np
from scipy.optimize import nnls

from h2gpu.arrays import to_host
from h2gpu.covariance.sites import Sites
from h2gpu.statistics.likelihood.time_pairs import stretches_in_time, variogram_in_time
from h2gpu.statistics.likelihood.variogram import empirical_variogram

STRETCHES = 48
SMALLEST_NUGGET = 1e-3  # of the variance, to start from: the logarithm of zero is nowhere
HARDLY = 0.1  # of the nugget: a variance below has hardly been seen, nor its length scale
FURTHER = 4  # starts then, of length scales from the distance of neighbours to that of any two sites


def starts_from_variogram(model, sites, y, random_state=0):
    """Models to start from: the one whose variance, length scales and nugget fit the empirical variogram of residuals
    y (n,); and where hardly more than a nugget is seen there, others of various length scales, half nugget or none."""
    x, timed = Sites.of(to_host(sites), model.cov).points, model.cov.timed
    placed = model.cov.placed(*model.cov.placement)
    spread = np.sqrt(placed.variances(x) / placed.variance_at_zero)  # of a field whose variance changes
    gamma = (variogram_in_time if timed else empirical_variogram)(x, to_host(y) / spread, random_state)
    weights = np.sqrt(gamma.count) / np.maximum(gamma.value, gamma.value.max() * 1e-6)
    best = None
    for stretch in stretches_in_time(model, gamma) if timed else _stretches(model, gamma):
        cov = model.scaled(1.0, *stretch).cov.placed(*model.cov.placement)
        rho = cov.values(x[gamma.pairs[0]], x[gamma.pairs[1]]) / cov.variance_at_zero
        if np.ndim(spread):
            rho /= spread[gamma.pairs[0]] * spread[gamma.pairs[1]]
        basis = np.stack([np.ones(len(gamma.value)), 1 - gamma.means(rho)], axis=1)
        (nugget, variance), residual = nonnegative(basis * weights[:, None], gamma.value * weights)
        if variance > 0 and (best is None or residual < best[0]):
            best = residual, stretch, variance, nugget
    found, half = [], 0.5 * float(gamma.value @ gamma.count / gamma.count.sum())
    if best is not None:
        found.append((best[1], best[2], max(best[3], SMALLEST_NUGGET * best[2])))
    if best is None or best[2] < HARDLY * best[3]:
        more = stretches_in_time(model, gamma, FURTHER) if timed else _stretches(model, gamma, FURTHER, 1.0, 0.5)
        found += [start for c in more for start in ((c, half, half), (c, 2 * half, 2 * half * SMALLEST_NUGGET))]
    unit = model.cov.variance_at_zero
    return [model.started(variance / unit, c, nugget, *times) for (c, *times), variance, nugget in found]


def nonnegative(basis, values):
    """(nugget, variance), residual: least squares of no number below zero. `basis` holds one column for each.

    The columns are equal where the correlation is zero at all distances. SciPy 1.13 has no answer to that: the nugget
    stands for both then.
    """
    try:
        return nnls(basis, values)
    except np.linalg.LinAlgError:
        (nugget,), residual = nnls(basis[:, :1], values)
        return (nugget, 0.0), residual


def _stretches(model, gamma, count=STRETCHES, below=0.3, above=2.0):
    """Factors of the length scales to try: to lengths from `below` the shortest distance to `above` the longest."""
    lengths = [free.value for free in model.free if free.kind == "length_scale"]
    if not lengths:
        return [(1.0,)]
    own = float(np.exp(np.log(lengths).mean()))
    positive = gamma.distance[gamma.distance > 0]
    return [(c,) for c in np.geomspace(below * positive[0], above * positive[-1], count) / own]
