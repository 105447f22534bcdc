"""Solves, determinants and square roots of covariance matrices: anything with `@`.

    A x = b                 conjugate_gradients     A any symmetric positive definite operator
    A⁻¹ ≈ Wᵀ W              vecchia, block_jacobi   preconditioners, from points and covariance
    A ≈ G Gᵀ                skeletonize             a direct factorization: solves, log det and G z
    log det A               log_determinant         with its Monte Carlo error
    A^½ x                   square_root             simulations
    rtol of A for all that  sufficient_rtol

The array decides where to compute. Everything is deterministic under `random_state`.

>>> import numpy as np
>>> from h2gpu.covariance import Exponential
>>> sites, cov = np.random.default_rng(0).random((500, 2)), Exponential(length_scale=0.3)
>>> W = vecchia(sites, cov, neighbours=20)
>>> solution = conjugate_gradients(cov(sites), np.ones((500, 1)), W)
>>> int(solution.iterations[0]) < 10, solution.message
(True, '')
>>> exact = np.linalg.slogdet(cov(sites))[1]
>>> estimate = log_determinant(cov(sites), W, trace=500)
>>> abs(estimate.value - exact) < 4 * estimate.standard_error < 0.1
True
"""

from h2gpu.solvers.accuracy import smallest_eigenvalue, sufficient_rtol
from h2gpu.solvers.block_jacobi import block_jacobi
from h2gpu.solvers.conjugate_gradients import Solution, conjugate_gradients
from h2gpu.solvers.inverse_factor import InverseFactor
from h2gpu.solvers.log_determinant import LogDeterminant, log_determinant
from h2gpu.solvers.skeletonization import Skeletonization, skeletonize
from h2gpu.solvers.square_root import square_root
from h2gpu.solvers.vecchia import vecchia

__all__ = [
    "InverseFactor",
    "LogDeterminant",
    "Skeletonization",
    "Solution",
    "block_jacobi",
    "conjugate_gradients",
    "log_determinant",
    "skeletonize",
    "smallest_eigenvalue",
    "square_root",
    "sufficient_rtol",
    "vecchia",
]
