"""Solves, determinants and square roots of covariance matrices: anything with `@`.

    A x = b                 conjugate_gradients     A any symmetric positive definite operator
    A⁻¹ ≈ Wᵀ W              vecchia, block_jacobi   preconditioners, from points and covariance
    log det A               log_determinant         with its Monte Carlo error
    A^½ x                   square_root             simulations
    rtol of A for all that  sufficient_rtol

The array decides where to compute. Everything is deterministic under `random_state`.
"""

from h2gpu.solvers.accuracy import smallest_eigenvalue, sufficient_rtol
from h2gpu.solvers.block_jacobi import block_jacobi
from h2gpu.solvers.conjugate_gradients import Solution, conjugate_gradients
from h2gpu.solvers.inverse_factor import InverseFactor
from h2gpu.solvers.log_determinant import LogDeterminant, log_determinant
from h2gpu.solvers.square_root import square_root
from h2gpu.solvers.vecchia import vecchia

__all__ = [
    "InverseFactor",
    "LogDeterminant",
    "Solution",
    "block_jacobi",
    "conjugate_gradients",
    "log_determinant",
    "smallest_eigenvalue",
    "square_root",
    "sufficient_rtol",
    "vecchia",
]
