"""Kriging of every target from its nearest sites alone, the usual way out where the covariance matrix does not fit.

    row i of the Vecchia factor of (its k nearest sites, target i), w = (w_N, w_i):   μ = −w_N·y_N / w_i,   s² = 1/w_i²

One small Cholesky factorization a target, all of them batched.

Reference: Vecchia (1988); Cressie (1993), Statistics for spatial data, section 3.2 (simple kriging).
"""

import numpy as np
from scipy.spatial import cKDTree

from h2gpu.batched.device.threads import parallel
from h2gpu.solvers.neighbours import nearest
from h2gpu.solvers.small_factors import cholesky, covariances, last_rows, together


def local_kriging(sites, values, targets, cov, mean=0.0, neighbours=60):
    """Means and standard deviations (m,), (m,) of new observations, nugget included, at targets (m, dim).

    sites, values   (n, dim), (n,) observations; NumPy arrays, as the targets
    cov             an `h2gpu.covariance` value, its nugget included
    mean            of the field, known (simple kriging)
    neighbours      sites used for a target

    Raises LinAlgError where the covariance of some neighbours is far from positive definite.
    """
    x, t, m = cov.embed(sites), cov.embed(targets), len(targets)
    k = min(neighbours, len(x))
    near = nearest(cKDTree(x), t, k)[1]
    residuals, W = np.asarray(values, float) - mean, np.empty((m, k + 1))

    def work(part):
        together_with_target = np.concatenate([x[near[part]], t[part, None]], axis=1)
        W[part] = last_rows(cholesky(covariances(cov.values, together_with_target, cov.nugget))[0])

    step = together(np, k + 1)
    parallel(work, [slice(i, i + step) for i in range(0, m, step)])
    own = W[:, -1]
    return mean - np.einsum("ij,ij->i", W[:, :-1], residuals[near]) / own, 1 / own
