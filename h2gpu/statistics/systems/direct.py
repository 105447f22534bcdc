"""K ≈ G Gᵀ by strong recursive skeletonization: the system of kriging without iterations and without probes.

    K⁻¹ b = G⁻ᵀ G⁻¹ b,   log det K = 2 Σ log g_ii,   samples G z,   kᵀ K⁻¹ k = |G⁻¹ k|² cell by cell

What is dropped is eta times the smallest conditional variance around, so that predictions are off by about eta of their
standard deviation. eta = 100 rtol; ten times as accurate costs some 15 % more time.

Reference: Minden, Ho, Damle & Ying (2017), A recursive skeletonization factorization based on strong admissibility.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from h2gpu import solvers
from h2gpu.arrays import array_module
from h2gpu.covariance.base import PLANE
from h2gpu.covariance.sites import Sites
from h2gpu.memory import free_memory
from h2gpu.solvers.log_determinant import LogDeterminant
from h2gpu.solvers.skeletonization import skeletonize_alike
from h2gpu.texts import brief

SOLVERS = "auto", "iterative", "direct"
ETA, LARGEST = 100.0, 0.01  # times rtol, and at most
FEWEST = 4096  # sites that "auto" factors: fewer are dense
BYTES = {"numpy": 8192, "cupy": 26624}  # of a factor by site, at most about
# (138,632 sites, eta 1e-4: Matérn 1 7,350, exponential 3,350; on a GPU 90,000 sites, eta 1e-4: short Matérn 2.3 25,090)
FACTORS, OF_LIKELIHOOD = 2, 3  # that there must be room for: as much again to work with; those of a step and one near


def checked_solver(solver):
    """One of SOLVERS; ValueError for others."""
    if not isinstance(solver, str) or solver not in SOLVERS:
        raise ValueError(f"solver: expected one of {', '.join(SOLVERS)}, got {brief(solver)}")
    return solver


def is_direct(solver, sites, cov, likelihood=False):
    """Whether many sites are to be factored: "auto" decides by measured cost (benchmarks/solvers/notes.md).

    likelihood   whether the log-determinant will be asked for, as by the steps of a fit

    On the CPU, for sites in the plane or on a sphere, the factorization took 0.4 to 0.85 of what matrix, preconditioner
    and solve, log-determinant included, took (eta 1e-3, 4,096 to 32,768 sites; 1e-4 takes some 15 % more). Without the
    determinant, fit and standard deviations took 0.67 times (105,569 sites, exponential) and 1.38 times (90,000 sites,
    Matérn 1) what iterations took; they are exact then, where iterations bound them from above. Not where a
    covariance has a range, beyond which it is zero: skeletons are large; nor where it changes from place to place, or
    from variable to variable.

    On a GPU for likelihoods and the steps of fits, which are made of them: a factorization takes 0.29 to 0.60 s on nine
    fields of 90,000 to 138,632 sites (`direct-fields-h200.csv`, eta 0.01) beside 0.7 to 1.1 s for preconditioner,
    matrix and Lanczos, whose log-determinant has noise. Whole fits took 8.5 and 12.3 beside 8.4 and 11.6 s by
    iterations (`study_heaton-estimated-cuda.csv`), 9.3 to 15.3 beside 10.6 to 18 s (`study_kaust-estimated-cuda.csv`,
    longer on two fields of five, by 0.2 and 1.7 s), with the same scores. Not for predictions at given parameters: with
    10,000 standard deviations they took 0.9 to 1.2 beside 1.3 to 1.6 s on three fields, 2.3 beside 2.0 and 3.4 beside
    4.0 s on smooth ones (`study_kaust-given-cuda.csv`), but a process's first factorization compiles for some seconds.
    """
    if checked_solver(solver) != "auto":
        return solver == "direct"
    xp, placed = array_module(sites), Sites.of(sites[:1], cov)
    flat = placed.dim <= 2 or placed.cov.embedding not in (None, PLANE)
    needed = (OF_LIKELIHOOD if likelihood else FACTORS) * BYTES[xp.__name__] * len(sites)
    fits = len(sites) >= FEWEST and needed < free_memory(xp)
    alike = cov.stationary and cov.variables is None
    return (xp is np or likelihood) and flat and not cov.kinks and fits and alike


def solver_of_fits(solver, sites, cov, nugget):
    """What the steps of a fit by the full likelihood are to be made by: `solver`, but iterations for "auto" where they
    cost less, as measured: on the CPU, with a nugget.

    There 90,000 sites took 137 CPU s by factorizations and 140 by iterations (a smooth field), 175 and 137 (a rough
    one); log-likelihoods were the same and 1.5 higher by factorizations. Without a nugget there is no step, as a rule.
    On a GPU steps are factored, as `is_direct` tells.
    """
    costly = array_module(sites) is np and np.max(nugget) + np.max(cov.nugget) > 0
    return "iterative" if checked_solver(solver) == "auto" and costly else solver


@dataclass(eq=False)
class DirectSystem:
    """K ≈ G Gᵀ, G a `solvers.Skeletonization`.

    rtol          that was asked for
    sites         (n, dim), cov and noise: for Vecchia's W, which `leave_one_out` compares with
    neighbours, random_state   of that
    """

    G: object
    rtol: float
    sites: object
    cov: object
    noise: object
    neighbours: int = 30
    random_state: int = 0
    exact = False
    iterations = 0

    def solve(self, B, rtol=None, enough=None):
        """G⁻ᵀ G⁻¹ B of B (n, count), whatever the residual asked for."""
        return self.G.solve(B)

    def explained(self, B):
        """bᵀ K⁻¹ b = |G⁻¹ b|² of the columns, (count,)."""
        return (self.G.solve_half(B) ** 2).sum(axis=0)

    def explained_at(self, cross):
        """kᵀ K⁻¹ k of the targets of a CrossCovariance, (m,), however many."""
        return self.G.explained(cross.located, cross.coincident)

    def product(self, B):
        """K B = G Gᵀ B of B (n, count)."""
        return self.G.multiply_half(self.G.multiply_half_transposed(B))

    def near(self, cov, noise):
        """The DirectSystem of a covariance and noise near these, by the same skeletons: for differences."""
        G = skeletonize_alike(self.G, self.sites, self.cov, cov, noise)
        return replace(self, G=G, cov=cov, noise=noise)

    def sample(self, Z):
        """G Z: of covariance K for Z (n, count) of independent standard normal numbers."""
        return self.G.multiply_half(Z)

    @cached_property
    def log_determinant(self):
        """log det G Gᵀ as a LogDeterminant, without probes."""
        return LogDeterminant(self.G.log_determinant(), 0.0, 0.0, 0, 0)

    @cached_property
    def W(self):
        """Vecchia's approximation of K⁻¹."""
        return solvers.vecchia(self.sites, self.cov, self.neighbours, nugget=self.noise, random_state=self.random_state)


def direct_system(sites, cov, noise, rtol, neighbours=30, random_state=0):
    """The DirectSystem of K = cov(sites) + noise on the diagonal.

    Raises ValueError for sites in space, LinAlgError for a covariance that is not positive definite.
    """
    G = solvers.skeletonize(sites, cov, min(ETA * rtol, LARGEST), nugget=noise)
    return DirectSystem(G, rtol, sites, cov, noise, neighbours, random_state)
