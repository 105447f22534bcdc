"""How good are predicted distributions of observations that are not Gaussian?  F the predicted P(y ≤ t | data), p its
density or probability, y the truth:

    log score = −log p(y)
    CRPS = ∫_−∞^y F² dt + ∫_y^∞ (1 − F)² dt        counts: a sum over t = 0, 1, …

F and p integrate the likelihood over the predictor, η ~ N(m, v), the same way for every package, so that what differs
is m and v. The integral over t is Gauss and Legendre's on t = y ± L u/(1 − u), L the spread of y about the truth.

Reference: Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation, JASA 102.
"""

import numpy as np

from h2gpu.statistics.generalized import predictive

NODES = 64
TAIL = 1e-9  # of a count's distribution: left out


def summary(likelihood, m, v, size, truth):
    """Averages by name: log score, crps, rmse of the predicted means, coverage of central 95 % intervals.

    likelihood    value of `statistics.generalized.likelihoods`
    m, v          (n,) means and variances of η;  size (n,) exposure or trials, truth (n,)
    """
    mean = predictive.moments(likelihood, m, v, size)[0]
    low, high = (predictive.quantile(likelihood, level, m, v, size) for level in (0.025, 0.975))
    return {
        "log score": -float(predictive.log_density(likelihood, truth, m, v, size).mean()),
        "crps": float(crps(likelihood, m, v, size, truth).mean()),
        "rmse": float(np.sqrt(np.mean((truth - mean) ** 2))),
        "coverage": float(np.mean((low <= truth) & (truth <= high))),
    }


def crps(likelihood, m, v, size, truth):
    """(n,)."""
    return (_of_counts if likelihood.discrete else _of_amounts)(likelihood, m, v, size, truth)


def _of_counts(likelihood, m, v, size, truth):
    found, t = np.zeros(len(m)), 0
    while True:
        F = predictive.cdf(likelihood, np.full(len(m), float(t)), m, v, size)
        found += (F - (truth <= t)) ** 2
        if (t >= truth).all() and (1 - F < TAIL).all():
            return found
        t += 1


def _of_amounts(likelihood, m, v, size, truth):
    u, weights = np.polynomial.legendre.leggauss(NODES)
    u, weights = (u + 1) / 2, weights / 2
    mean, spread, within = predictive.moments(likelihood, m, v, size)
    reach = np.sqrt(spread + within + (truth - mean) ** 2)
    found = np.zeros(len(m))
    for node, weight in zip(u, weights):
        away, stretch = reach * node / (1 - node), reach / (1 - node) ** 2
        if likelihood.link == "log":  # nothing below 0
            below, length = truth * node, truth
        else:
            below, length = truth - away, stretch
        found += weight * length * predictive.cdf(likelihood, below, m, v, size) ** 2
        found += weight * stretch * (1 - predictive.cdf(likelihood, truth + away, m, v, size)) ** 2
    return found
