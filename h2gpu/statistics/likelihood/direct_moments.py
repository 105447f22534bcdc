"""The moments by direct factorizations, K ≈ G Gᵀ: no Monte Carlo noise. Derivatives by differences.

    ∂ log det K ≈ (log det K(θ + h e_j) − log det K(θ)) / h,     ∂K V ≈ (G₊ G₊ᵀ V − G Gᵀ V) / h,   V = K⁻¹ B
    ∂M = −Vᵀ ∂K V                                                log det c K = log det K + n log c

G₊ is made by the choice of skeletons of G (`skeletonize_alike`) and so a smooth function of θ: h can be so small that
one side is enough, where factors with choices of their own jump by more than a step changes. (5,000 sites, eta 1e-4:
slopes are right to 0.1, where the score's standard deviation is some 30.) Why differences: traces by 16 probes with G
leave an error of a quarter of that deviation, 1/√16, and want an H²-matrix of ∂K for each parameter. What all variances
do together is known: one of them costs nothing. ∂K V also gives the average information of all sites.

Reference: Minden, Damle, Ho & Ying (2017), Fast spatial Gaussian process maximum likelihood estimation via
skeletonization factorizations.
"""

import numpy as np

from h2gpu.arrays import array_module, to_host
from h2gpu.statistics.likelihood.moments import Moments, average_information
from h2gpu.statistics.systems.direct import direct_system

STEP = 1e-5  # h, in the logarithm of a parameter: one side is off by h/2 of a curvature, some n
VARIANCES = "variance", "nugget"


def direct_moments(model, sites, noise, B, derivatives=False, *, rtol=1e-6, neighbours=30, random_state=0, system=None):
    """The Moments; first arguments as for `moments.dense_moments`, system a DirectSystem where it is known."""
    system = system or direct_system(sites, model.cov, noise(model.nugget), rtol, neighbours, random_state)
    half = system.G.solve_half(B)
    logdet, gram = system.log_determinant.value, to_host(half.T @ half)
    if not derivatives:
        return Moments(logdet, gram)
    V = system.G.solve_half_transposed(half)
    slopes, T = _derivatives(model, system, noise, V, logdet)
    gram_slopes = -to_host(array_module(V).einsum("ic,jid->jcd", V, T))
    return Moments(logdet, gram, slopes, gram_slopes, average_information(system.solve, T, V, B))


def _derivatives(model, system, noise, V, logdet):
    """∂ log det K (J,) and ∂K V (J, n, columns)."""
    theta, known, product = model.theta, _implied(model), system.product(V)
    slopes, T = np.zeros(len(theta)), array_module(V).zeros((len(theta), *V.shape))
    diagonals = _diagonals(model, noise)
    for j in range(len(theta)):
        if j == known or not np.isfinite(theta[j]):  # a nugget of zero changes nothing by its logarithm
            continue
        step = np.zeros(len(theta))
        step[j] = STEP
        near = model.at(theta + step)
        near = system.near(near.cov, noise(near.nugget))
        slopes[j] = (near.log_determinant.value - logdet) / STEP
        d = diagonals.get(j)
        T[j] = (near.product(V) - product) / STEP if d is None else (array_module(V).asarray(d) * V.T).T
    if known is not None:
        together = [j for j, one in enumerate(model.free) if one.kind in VARIANCES]
        slopes[known] = len(V) - slopes[together].sum()
        T[known] = product - T[together].sum(axis=0)
    return slopes, T


def _diagonals(model, noise):
    """∂K of the parameters of which it is diagonal, {number: one number or (n,)}."""
    parts = {j: (cov, nugget) for j, (cov, nugget) in enumerate(model.derivatives())}
    flat = {j: part for j, part in parts.items() if part[0] is None or part[0].embedding is None}
    return {j: noise(nugget) + (0.0 if cov is None else cov.nugget) for j, (cov, nugget) in flat.items()}


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
