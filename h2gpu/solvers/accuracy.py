"""How accurate must the matrix be for a solve?

    ‖E‖₂ ≤ ‖E‖_F ≤ rtol ‖A‖_F ≤ λ_min(A)   keeps A + E positive semidefinite

Without a nugget a smooth covariance has eigenvalues 10⁻¹² times its norm: at rtol 1e-8 its H²-matrix may be indefinite.
The smallest eigenvalue is that of a sparse inverse factor, 1/λ_max(Wᵀ W), and never below the nugget.
"""

import logging

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.covariance.base import Covariance
from h2gpu.covariance.sites import Sites
from h2gpu.solvers.inverse_factor import InverseFactor
from h2gpu.solvers.lanczos import Lanczos
from h2gpu.solvers.operators import column_dots
from h2gpu.typing import ArrayLike, Seed

logger = logging.getLogger("h2gpu")

STEPS = 30  # of Lanczos for λ_max, to a per cent where it stands apart
LOWEST = 5e-14  # what interpolation and rounding allow in float64
LOWEST_SINGLE = 5e-6


def sufficient_rtol(
    points: ArrayLike, cov: Covariance, preconditioner: InverseFactor, *, highest: float = 1e-6, random_state: Seed = 0
) -> float:
    """The rtol for `covariance_matrix` with which the matrix stays positive definite.

    points, cov     as for `covariance_matrix`
    preconditioner  `vecchia(points, cov)`: tells the smallest eigenvalue
    highest         what the results need anyway; never more than that is returned

    The eigenvalue, the norm and the outcome are logged (logger "h2gpu", level info). Where not even the best accuracy
    of the precision suffices, that is returned and a warning logged: then only a nugget helps.

    Raises ValueError for bad arguments.
    Source: Golub & Van Loan (2013), section 8.1: a perturbation E moves no eigenvalue by more than ‖E‖.

    >>> import numpy as np
    >>> from h2gpu import covariance, solvers
    >>> sites = np.random.default_rng(0).random((400, 2))
    >>> cov = covariance.Exponential(length_scale=0.3) + covariance.Nugget(0.1)
    >>> K = cov(sites)
    >>> rtol = solvers.sufficient_rtol(sites, cov, solvers.vecchia(sites, cov))
    >>> 0 < rtol <= 1e-6
    True
    """
    return rtol_for(Sites.of(points, cov), smallest_eigenvalue(preconditioner, random_state), highest)


def rtol_for(sites, smallest, highest):
    """The same of Sites and the smallest eigenvalue, as far as it is known."""
    smallest, norm = max(sites.cov.nugget, smallest), sites.norm + sites.cov.nugget * sites.shape[0] ** 0.5
    rtol, lowest = smallest / norm, LOWEST if sites.dtype == np.float64 else LOWEST_SINGLE
    logger.info("sufficient_rtol: smallest eigenvalue %.3g, Frobenius norm %.3g: rtol %.3g", smallest, norm, rtol)
    if rtol < lowest:
        logger.warning(
            "sufficient_rtol: %.3g is beyond %s; the matrix may be indefinite, add a nugget", rtol, sites.dtype
        )
    return min(highest, max(rtol, lowest))


def smallest_eigenvalue(preconditioner: InverseFactor, random_state: Seed = 0) -> float:
    """About λ_min(A) of A⁻¹ ≈ Wᵀ W: 1/λ_max(Wᵀ W), by Lanczos from below λ_max.

    Raises LinAlgError where a product is not finite. Source: Golub & Van Loan (2013), section 10.1, for Lanczos.

    >>> import numpy as np
    >>> from h2gpu import covariance, solvers
    >>> sites = np.random.default_rng(0).random((400, 2))
    >>> cov = covariance.Exponential(length_scale=0.3) + covariance.Nugget(0.1)
    >>> K = cov(sites)
    >>> exact = np.linalg.eigvalsh(K)[0]
    >>> bool(abs(solvers.smallest_eigenvalue(solvers.vecchia(sites, cov, neighbours=399)) / exact - 1) < 0.1)
    True
    """
    xp, n = array_module(preconditioner.W.data), preconditioner.shape[0]
    start = np.random.default_rng(random_state).standard_normal((n, 1)).astype(preconditioner.dtype)
    return 1 / largest_eigenvalue(lambda x: preconditioner @ x, xp.asarray(start), n)


def largest_eigenvalue(apply, start, n, dots=column_dots, against=None):
    """About the largest eigenvalue of X ↦ apply(X), n × n, by `Lanczos` from a start (n, 1)."""
    run = Lanczos(apply, start, True, dots, against)
    for _ in range(min(STEPS, n)):
        run.step()
    theta, _ = run.spectra()
    return float(theta.max())
