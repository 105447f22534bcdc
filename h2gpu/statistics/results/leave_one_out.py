"""Leave-one-out cross-validation from one factorization, and joint covariances of predictions.

    y_i − ŷ_i = w_i / P_ii,   var(y_i − ŷ_i) = 1 / P_ii,   P = K⁻¹ − K⁻¹ Q (Qᵀ K⁻¹ Q)⁻¹ Qᵀ K⁻¹,   w = P y

ŷ_i predicts observation i from all others, trend coefficients estimated without it. Of many sites diag K⁻¹ is that of
Vecchia's Wᵀ W, corrected by random signs z: E[z ∘ (K⁻¹ − Wᵀ W) z]. The values are then of measured error.

Reference: Dubrule (1983), Cross validation of kriging in a unique neighborhood.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import array_module, to_host

PROBES = 32  # random vectors
MOST_TARGETS = 5000  # of a joint covariance


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Predictions of each place from all others, in the order in which the places come.

    values, mean, std   (n,) what was observed (means where sites repeat), its prediction, its standard deviation,
                        measurement error included
    std_error           relative standard error of the std, root mean square; 0.0 where exact
    """

    values: object
    mean: object
    std: object
    std_error: float = 0.0


def leave_one_out(equations, values, level=0.0, random_state=0):
    """The LeaveOneOut of solved `equations.Equations`.

    values         (n,) of the places, free of the known mean
    level          the known mean, one number or (n,): added to values and predictions
    random_state   of the probes, for many sites
    """
    xp, system, regression = array_module(values), equations.system, equations.regression
    diagonal, spread = _exact_diagonal(system, xp) if system.exact else _estimated_diagonal(system, random_state)
    Z = regression.solved
    inverse = xp.asarray(np.linalg.inv(regression.information))
    trend = xp.einsum("ij,ij->i", Z, Z @ inverse)
    P = xp.maximum(diagonal - trend, 1e-12 * diagonal)
    error = float(xp.sqrt(((spread / P) ** 2).mean())) / 2
    return LeaveOneOut(values + level, values + level - equations.w[:, 0] / P, 1 / xp.sqrt(P), error)


def _exact_diagonal(system, xp):
    """diag K⁻¹ of a DenseSystem, and its errors."""
    n = len(system.L)
    half = system.solve_half(xp.eye(n))
    return (half**2).sum(axis=0), xp.zeros(n)


def _estimated_diagonal(system, random_state):
    """diag K⁻¹ of a HierarchicalSystem and the standard errors of its entries."""
    W, n = system.W, system.W.shape[0]
    xp = array_module(W.W.data)
    z = xp.asarray(2.0 * np.random.default_rng(random_state).integers(0, 2, (n, PROBES)) - 1)
    samples = z * (system.solve(z) - W @ z)
    known = W.squared_columns
    found = known + samples.mean(axis=1)
    return xp.where(found > 0.1 * known, found, known), samples.std(axis=1, ddof=1) / PROBES**0.5


def joint_covariance(equations, X, added):
    """Means (m,) and the covariance matrix (m, m) of the errors of prediction at X (m, features).

    added   variance of new measurement errors
    """
    xp, m = array_module(X), len(X)
    if m > MOST_TARGETS:
        raise ValueError(f"return_cov: expected at most {MOST_TARGETS} targets, as it is a dense matrix, got {m}")
    cross, q = equations._cross(X), equations._q(X)
    columns = cross.columns(slice(0, m))
    solved = equations.system.solve(columns)
    cov, places = equations.cov, equations.trend.sites(X)
    own = cov(places, places)
    if cov.nugget:  # variation below the sampling distance is shared at one place
        _, place = np.unique(to_host(places), axis=0, return_inverse=True)
        place = place.ravel()
        own += cov.nugget * xp.asarray(place[:, None] == place[None])
    u = q - solved.T @ equations.regression.Q
    joint = own - columns.T @ solved + u @ xp.asarray(np.linalg.inv(equations.regression.information)) @ u.T
    joint = 0.5 * (joint + joint.T)
    joint.reshape(-1)[:: m + 1] += added
    return equations.means(X)[:, 0], joint
