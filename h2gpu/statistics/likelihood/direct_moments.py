"""The moments by direct factorizations, K ≈ G Gᵀ: no Monte Carlo noise. Derivatives by central differences.

    ∂f ≈ (f(θ + h e_j) − f(θ − h e_j)) / 2h,  f = log det K, M = Bᵀ K⁻¹ B        log det c K = log det K + n log c

Why differences: the value has no noise, so that h can be small (3,000 sites, eta 1e-4: slopes are right to 0.03, where
the score's standard deviation is some 30). Traces by 16 probes with G leave an error of a quarter of that deviation,
1/√16, and want an H²-matrix of ∂K for each parameter. What all variances do together is known: one of them costs
nothing. The information matrix, which only chooses Newton's step, is Vecchia's, at some seconds.
"""

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.statistics.likelihood.moments import Moments
from h2gpu.statistics.likelihood.vecchia_moments import vecchia_moments, vecchia_rows
from h2gpu.statistics.systems.direct import direct_system

STEP = 2e-3  # h, in the logarithm of a parameter
VARIANCES = "variance", "nugget"


def direct_moments(model, sites, noise, B, derivatives=False, *, rtol=1e-6, neighbours=30, random_state=0, system=None):
    """The Moments; first arguments as for `moments.dense_moments`, system a DirectSystem where it is known."""

    def of(model, system=None):
        system = system or direct_system(sites, model.cov, noise(model.nugget), rtol, neighbours, random_state)
        half = system.G.solve_half(B)
        return system.log_determinant.value, to_host(half.T @ half)

    logdet, gram = of(model, system)
    if not derivatives:
        return Moments(logdet, gram)
    theta, free = model.theta, model.free
    slopes, gram_slopes = np.zeros(len(theta)), np.zeros((len(theta), *gram.shape))
    known = _implied(model)
    for j in range(len(theta)):
        if j == known or not np.isfinite(theta[j]):  # a nugget of zero changes nothing by its logarithm
            continue
        step = np.zeros(len(theta))
        step[j] = STEP
        (high, M_high), (low, M_low) = of(model.at(theta + step)), of(model.at(theta - step))
        slopes[j], gram_slopes[j] = (high - low) / (2 * STEP), (M_high - M_low) / (2 * STEP)
    if known is not None:
        together = [j for j, one in enumerate(free) if one.kind in VARIANCES]
        slopes[known] = len(sites) - slopes[together].sum()
        gram_slopes[known] = -gram - gram_slopes[together].sum(axis=0)
    rows = vecchia_rows(sites, model.cov, neighbours, random_state)
    information = vecchia_moments(model, rows, noise, B, True).information
    return Moments(logdet, gram, slopes, gram_slopes, information)


def _implied(model, factor=2.0):
    """Which variance's derivative follows from the others', as K is multiplied with all of them; or None."""
    variances = [j for j, one in enumerate(model.free) if one.kind == "variance"]
    more = model.scaled(factor)
    whole = [
        (more.nugget, model.nugget),
        (more.cov.nugget, model.cov.nugget),
        (more.cov.variance_at_zero, model.cov.variance_at_zero),
    ]
    complete = all(np.isclose(a, factor * b, rtol=1e-12, atol=0) for a, b in whole)
    return variances[0] if variances and complete else None
