"""Collocated cokriging: observations of other variables at a target itself improve its predictions.

    Ẑ_u + S_uk (S_kk + N_k)⁻¹ (y_k − Ẑ_k),     S (p, p) covariance of the errors of full cokriging at the target

u are the variables at a target, k those observed there. Reference: Xu, Tran, Srivastava & Journel (1992).
"""

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.statistics.results.leave_one_out import MOST_TARGETS, joint_covariance

TOGETHER = 64  # targets whose errors are found by one solve


def conditioned(equations, sites, p, nuggets, Y):
    """Means (m p,) and variances (m p,) at stacked sites (m p, d + 1), given Y (m, p) there, NaN where unknown."""
    m, xp = len(sites) // p, array_module(sites)
    Y = np.asarray(Y, np.float64)
    if Y.shape != (m, p):
        raise ValueError(f"collocated: expected shape ({m}, {p}) as for the targets, got {Y.shape}")
    if m > MOST_TARGETS:
        raise ValueError(f"collocated: expected up to {MOST_TARGETS} targets, got {m}; predict some at a time")
    mean = to_host(equations.means(sites)[:, 0]).reshape(m, p).copy()
    variances = np.empty((m, p))
    for t, S in enumerate(_errors(equations, sites, p)):
        known = np.flatnonzero(np.isfinite(Y[t]))
        if len(known):
            G = np.linalg.solve(S[np.ix_(known, known)] + np.diag(nuggets[known]), S[known]).T
            mean[t] += G @ (Y[t, known] - mean[t, known])
            S = S - G @ S[known]
        variances[t] = np.maximum(np.diagonal(S), 0)
    return xp.asarray(mean.ravel()), xp.asarray(variances.ravel())


def _errors(equations, sites, p):
    """The covariance (p, p) of the errors at each target, on the host."""
    for first in range(0, len(sites), TOGETHER * p):
        joint = to_host(joint_covariance(equations, sites[first : first + TOGETHER * p], 0.0)[1])
        for t in range(0, len(joint), p):
            yield joint[t : t + p, t : t + p]
