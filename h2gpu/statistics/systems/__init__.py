"""K = C + N of the observations, and what kriging asks of it: solve, log-determinant, samples.

    few sites     K = L Lᵀ, dense                                        exact to rounding
    many          K ≈ G Gᵀ by skeletonization (`direct`)               to rtol, in the plane and on the sphere
                  K an H²-matrix, A⁻¹ ≈ Wᵀ W by Vecchia's approximation   conjugate gradients, Lanczos

The rtol of the H²-matrix is what keeps it positive definite (`sufficient_rtol`), and never more than the user's.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from h2gpu import solvers
from h2gpu.arrays import array_module
from h2gpu.batched.device.threads import one_blas_thread
from h2gpu.covariance import Nugget
from h2gpu.covariance.sites import Sites
from h2gpu.h2matrix import covariance_matrix
from h2gpu.solvers.log_determinant import LogDeterminant
from h2gpu.solvers.operators import column_dots
from h2gpu.solvers.small_factors import cholesky
from h2gpu.statistics.systems.direct import direct_system, is_direct
from h2gpu.statistics.systems.variables import matrix_of

logger = logging.getLogger("h2gpu")

DENSE = (
    4096  # sites up to which the dense factorization is as fast (4,096: a second), and exact. Its BLAS has one thread:
)
# on busy cores OpenBLAS's threads wait for each other (2 cores, another job: Cholesky of 1,000 500 ms in place of 24)
SOLVE = 1e-8  # residual of the solves, at most
ROOT = 1e-5  # of square roots: error of the innovations that a simulation is made of
ROUNDING = 1e-8  # of a diagonal: what rounding may have taken from the least eigenvalue
STABLE = 1e-12  # rtol of an H²-matrix that is still cheap
MOST = 500  # iterations of a solve: with Vecchia's preconditioner some ten are enough


def covariance_system(
    sites, cov, noise, rtol, neighbours, random_state, solver="auto", stabilized=False, likelihood=False
):
    """The system of K = cov(sites) + noise on the diagonal: a DenseSystem, DirectSystem or HierarchicalSystem.

    sites        (n, dim) float64, where the work is to be done
    noise        variance of the measurement errors: one number, or (n,) on the host
    rtol         of the H²-matrix, at most; of the direct factorization
    solver       of more than DENSE sites, "auto", "iterative" or "direct"; "auto" falls back to iterations
    stabilized   whether a matrix that is singular to rounding gets a larger diagonal, and a warning is logged; a dense
                 one always does
    likelihood   whether its log-determinant will be asked for: a GPU factors then, as `is_direct` tells
    """
    if len(sites) <= DENSE:
        system = dense_system(sites, cov, noise)
        if system.enlarged:
            logger.warning(
                "the covariance matrix of %d sites is singular to rounding; its diagonal was enlarged by %.2g: add a "
                "nugget",
                len(sites),
                system.enlarged,
            )
        return system
    if stabilized:
        noise = noise + _stabilizing(sites, cov, noise, neighbours, random_state)
    if is_direct(solver, sites, cov, likelihood):
        try:
            return direct_system(sites, cov, noise, rtol, neighbours, random_state)
        except np.linalg.LinAlgError as error:
            if solver == "direct":
                raise
            logger.warning("%s; taking iterations", error)
    return hierarchical_system(sites, cov, noise, rtol, neighbours, random_state)


@dataclass(frozen=True, eq=False)
class DenseSystem:
    """K = L Lᵀ, L (n, n) lower triangular; enlarged tells by what the diagonal had to be, 0.0 if not."""

    L: object
    enlarged: float
    exact = True
    iterations = 0
    rtol = 0.0

    def solve(self, B):
        """K⁻¹ B of B (n, count)."""
        return self._triangular(self._triangular(B), transposed=True)

    def solve_half(self, B):
        """L⁻¹ B of B (n, count)."""
        return self._triangular(B)

    def explained(self, B):
        """bᵀ K⁻¹ b = ‖L⁻¹ b‖² of the columns, (count,)."""
        return (self.solve_half(B) ** 2).sum(axis=0)

    @one_blas_thread()
    def sample(self, Z):
        """S Z with S Sᵀ = K, of Z (n, count)."""
        return self.L @ Z

    @cached_property
    def log_determinant(self):
        """log det K as a LogDeterminant, exact."""
        xp = array_module(self.L)
        return LogDeterminant(2 * float(xp.log(xp.diagonal(self.L)).sum()), 0.0, 0.0, 0, 0)

    @one_blas_thread()
    def _triangular(self, B, transposed=False):
        if array_module(self.L) is np:
            return scipy.linalg.solve_triangular(self.L, B, lower=True, trans=int(transposed), check_finite=False)
        from cupyx.scipy.linalg import solve_triangular

        return solve_triangular(self.L, B, lower=True, trans=int(transposed))


@one_blas_thread()
def dense_system(sites, cov, noise):
    """The DenseSystem. A matrix that is singular to rounding gets a larger diagonal.

    Raises LinAlgError for a covariance that is not positive definite: where more than rounding is missing.
    """
    xp = array_module(sites)
    K = cov(sites)
    K.reshape(-1)[:: len(K) + 1] += xp.asarray(noise)
    L, enlarged = cholesky(K[None])
    added = float(L[0, 0, 0] ** 2 - K[0, 0]) if bool(enlarged[0]) else 0.0
    if added > ROUNDING * float(K[0, 0]):
        raise np.linalg.LinAlgError(
            f"the covariance matrix of {len(sites)} sites is not positive definite, {added:.2g} on its diagonal are "
            "missing; check that the covariance function is valid in this number of dimensions and on this surface"
        )
    return DenseSystem(L[0], added)


@dataclass(eq=False)
class HierarchicalSystem:
    """K as an H²-matrix A, and Vecchia's W with K⁻¹ ≈ Wᵀ W.

    A             H2Matrix, or anything with @
    W             InverseFactor
    rtol          with which A was built
    random_state  seed of the log-determinant's probes
    iterations    most that a solve took so far
    build         what builds the matrices of correlations of several variables
    """

    A: object
    W: object
    rtol: float
    random_state: int = 0
    iterations: int = 0
    build: Callable = covariance_matrix
    exact = False

    def solve(self, B, rtol=SOLVE, enough=0.0):
        """K⁻¹ B of B (n, count), to a residual of rtol ‖b‖, at worst of `enough` ‖b‖; else LinAlgError."""
        solution = solvers.conjugate_gradients(self.A, B, self.W, rtol=rtol, maximum=MOST)
        return accepted(self, solution, enough)

    def explained(self, B):
        """bᵀ K⁻¹ b of the columns, (count,)."""
        return column_dots(B, self.solve(B))

    def sample(self, Z):
        """S Z with S Sᵀ = K, of Z (n, count)."""
        return solvers.square_root(self.A, Z, self.W, rtol=ROOT, maximum=MOST)

    @cached_property
    def log_determinant(self):
        """log det K as a LogDeterminant, with its Monte Carlo error."""
        return self.log_determinant_of(16, self.random_state)

    def log_determinant_of(self, probes, random_state):
        """The same from so many probes."""
        return solvers.log_determinant(self.A, self.W, probes=probes, trace=self.W.shape[0], random_state=random_state)

    def probed(self, z, rtol):
        """Wᵀ z and K⁻¹ W⁻¹ z of z (n, count), the columns of W in its own order; E of one times the other is K⁻¹."""
        return self.W.whiten_transposed(z), self.solve(self.W.colour(z), rtol=rtol)

    def product_with(self, sites, cov, rtol):
        """The covariance matrix of another covariance at the sites, or the system's own for None: with @."""
        return self.A if cov is None else matrix_of(sites, cov, rtol, self.build)


def accepted(system, solution, enough):
    """The columns of a Solution with residuals of at most `enough` ‖b‖, else LinAlgError; iterations are counted."""
    worst = solution.residuals.max(initial=0)
    system.iterations = max(system.iterations, int(solution.iterations.max(initial=0)))
    logger.info("solve: %s iterations, residual %.2g", solution.iterations, worst)
    return solution.x if worst <= enough else solution.checked()


def hierarchical_system(sites, cov, noise, rtol, neighbours, random_state, build=covariance_matrix):
    """The HierarchicalSystem."""
    least = float(np.min(noise))
    total = cov + Nugget(least) if least else cov
    W = solvers.vecchia(sites, cov, neighbours, nugget=noise, random_state=random_state)
    rtol = solvers.sufficient_rtol(sites, total, W, highest=rtol, random_state=random_state)
    A = matrix_of(sites, total, rtol, build)
    if np.ndim(noise):
        A = WithDiagonal(A, array_module(sites).asarray(noise - least))
    return HierarchicalSystem(A, W, rtol, random_state=random_state, build=build)


def _stabilizing(sites, cov, noise, neighbours, random_state):
    """What must be added to the diagonal so that an H²-matrix of rtol STABLE is positive definite."""
    W = solvers.vecchia(sites, cov, neighbours, nugget=noise, random_state=random_state)
    missing = STABLE * Sites.of(sites, cov).norm - solvers.smallest_eigenvalue(W, random_state)
    if missing <= 0:
        return 0.0
    logger.warning(
        "the covariance matrix of %d sites is singular to rounding; added a nugget of %.3g", len(sites), missing
    )
    return missing


@dataclass(frozen=True, eq=False)
class WithDiagonal:
    """A + diag(d): measurement errors that differ from site to site."""

    A: object
    d: object

    @property
    def shape(self):
        """(n, n)."""
        return self.A.shape

    @property
    def dtype(self):
        """That of A."""
        return self.A.dtype

    @property
    def nearfield(self):
        """That of A, which tells where vectors must be."""
        return self.A.nearfield

    def __matmul__(self, x):
        """A x + d x of x (n,) or (n, count)."""
        return self.A @ x + (self.d if x.ndim == 1 else self.d[:, None]) * x
