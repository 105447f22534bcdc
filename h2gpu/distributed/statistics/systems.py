"""K = C + N by ranks, and what kriging asks of it: as `statistics.systems`, vectors of all sites on all hosts.

    K⁻¹ B:   B → own rows → conjugate gradients by ranks → all rows          W, rtol, A as in the serial system

A vector of all sites takes 8 bytes a site, the matrix some kilobytes: only the matrix must be shared out. Where one
process factors so few sites that its factor fits on every host, every rank does, and predicts at its own targets alone.
"""

import logging
from dataclasses import dataclass

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.covariance import Nugget
from h2gpu.covariance.sites import Sites
from h2gpu.distributed.assembly import of_sites, own_part
from h2gpu.distributed.interfaces import linear_operator
from h2gpu.distributed.matrix import DistributedH2Matrix, gathered
from h2gpu.distributed.solvers import DistributedInverseFactor, conjugate_gradients, log_determinant, square_root
from h2gpu.distributed.solvers.inverse_factor import factor_of
from h2gpu.distributed.solvers.stochastic import against_of, dots_of
from h2gpu.distributed.trees.shares import shared
from h2gpu.distributed.trees.sorting import sorted_points
from h2gpu.h2matrix.planning.planner import LEAF_SIZES
from h2gpu.memory import free_memory
from h2gpu.solvers.accuracy import largest_eigenvalue, rtol_for
from h2gpu.solvers.operators import column_dots
from h2gpu.statistics import systems
from h2gpu.statistics.systems import MOST, ROOT, SOLVE, STABLE, accepted
from h2gpu.statistics.systems.direct import BYTES, is_direct

logger = logging.getLogger("h2gpu")

LEAF_SIZE = 64  # of the tree that shares out the rows before the matrix has one
FACTORED = 1 << 15  # sites that every rank factors, at most: so many take one process less than iterations, measured


@dataclass(eq=False)
class DistributedSystem:
    """As `statistics.systems.HierarchicalSystem`; a call of all ranks, B of all sites in the caller's order.

    comm          Communicator
    A             DistributedH2Matrix, or a DistributedDiagonal added to it
    W             DistributedInverseFactor
    rtol          with which A was built
    random_state  seed of the log-determinant's probes
    iterations    most that a solve took so far
    """

    comm: object
    A: object
    W: DistributedInverseFactor
    rtol: float
    random_state: int = 0
    iterations: int = 0
    _told: object = None
    exact = False

    @property
    def own(self):
        """Numbers of the sites whose rows this rank has."""
        return self.A.rows.partition.points(self.comm.rank)

    def solve(self, B, rtol=SOLVE, enough=0.0):
        """K⁻¹ B of B (n, count), to a residual of rtol ‖b‖, at worst of `enough` ‖b‖; else LinAlgError."""
        return self._whole(self.solve_own(self._own(B), rtol, enough))

    def solve_own(self, B, rtol=SOLVE, enough=0.0):
        """The same of own rows (own, count), where comm.xp is."""
        solution = conjugate_gradients(self.A, B, self.W, rtol=rtol, maximum=MOST)
        return accepted(self, solution, enough)

    def explained_own(self, B):
        """bᵀ K⁻¹ b of columns of which all ranks give their own rows (own, count): (count,) on the host of all."""
        return self.comm.sum(to_host(column_dots(B, self.solve_own(B))), "explained variances")

    def sample(self, Z):
        """S Z with S Sᵀ = K, of Z (n, count)."""
        Z = self.comm.xp.asarray(Z[self.W.positions])  # entry i belongs to row i of W
        return self._whole(square_root(self.A, Z, self.W, rtol=ROOT, maximum=MOST))

    @property
    def log_determinant(self):
        """log det K as a LogDeterminant, with its Monte Carlo error; worked out once."""
        if self._told is None:
            self._told = self.log_determinant_of(16, self.random_state)
        return self._told

    def log_determinant_of(self, probes, random_state):
        """The same from so many probes."""
        n = self.A.shape[0]
        return log_determinant(self.A, self.W, probes=probes, trace=n, random_state=random_state)

    def probed(self, z, rtol):
        """Wᵀ z and K⁻¹ W⁻¹ z of z (n, count), the columns of W in its own order.

        The second is Wᵀ (W K Wᵀ)⁻¹ z: a triangular system with W, whose rows would wait for each other, is not needed.
        """
        z = self.comm.xp.asarray(z[self.W.positions])
        u = conjugate_gradients(_Whitened(self.A, self.W), z, rtol=rtol, maximum=MOST).checked()
        return tuple(self._whole(self.W.whiten_transposed(part)) for part in (z, u))

    def product_with(self, sites, cov, rtol):
        """The covariance matrix of another covariance at the sites, or the system's own for None: with @, of vectors of
        all sites."""
        return linear_operator(self.A if cov is None else of_sites(self.comm, Sites.of(sites, cov), rtol))

    def _own(self, B):
        return self.comm.xp.asarray(B[self.own])

    def _whole(self, x):
        return gathered(self.comm, self.A.rows.partition, x)


@dataclass(eq=False, kw_only=True)
class MixedSystem(systems.HierarchicalSystem):
    """Of several variables: the matrices of the correlations are by ranks, vectors and Vecchia's factor on all hosts.

    All ranks iterate alike, on the same numbers; a call of all, B the same.
    """

    comm: object
    own = slice(None)  # rows that this rank gives

    def explained_own(self, B):
        """As that of DistributedSystem, of all rows."""
        return to_host(self.explained(to_host(B)))


def mixed_system(comm, *given):
    """The MixedSystem of what `statistics.systems.hierarchical_system` is given."""

    def build(places, rho, rtol):
        return linear_operator(of_sites(comm, Sites.of(places, rho), rtol))

    return MixedSystem(comm=comm, **vars(systems.hierarchical_system(*given, build)))


@dataclass(frozen=True, eq=False)
class DistributedDiagonal:
    """A + diag(d) of own rows: measurement errors that differ from site to site."""

    A: DistributedH2Matrix
    d: object

    def __getattr__(self, name):
        return getattr(self.A, name)

    def __matmul__(self, x):
        """A x + d x of x (own,) or (own, count)."""
        return self.A @ x + (self.d if x.ndim == 1 else self.d[:, None]) * x


@dataclass(frozen=True, eq=False)
class _Whitened:
    """W K Wᵀ of own rows."""

    A: object
    W: DistributedInverseFactor
    symmetric = True

    def __getattr__(self, name):
        return getattr(self.A, name)

    def __matmul__(self, x):
        return self.W.whiten(self.A @ self.W.whiten_transposed(x))


def system_of(comm, sites, cov, noise, rtol, neighbours, random_state, solver="iterative", stabilized=False):
    """The system of K = cov(sites) + noise: a DistributedSystem, of several variables a MixedSystem, or of few sites
    the DenseSystem or DirectSystem on every host.

    sites   (n, dim) float64 on all hosts; the others as for `statistics.systems.covariance_system`
    """
    given = sites, cov, noise, rtol, neighbours, random_state
    if len(sites) <= systems.DENSE:
        return systems.covariance_system(*given)
    if cov.variables is not None:
        return mixed_system(comm, *given)
    if _is_factored(comm, solver, sites, cov) and (system := _factored(comm, given, stabilized)):
        return system
    least = float(np.min(noise))
    placed, W = _factor(comm, sites, cov, noise, neighbours, random_state)
    smallest = _smallest_eigenvalue(W, placed, random_state)
    if stabilized and (missing := STABLE * Sites.of(sites, cov).norm - smallest) > 0:
        if comm.rank == 0:
            logger.warning("%d sites: singular to rounding; added a nugget of %.3g", len(sites), missing)
        noise, least = noise + missing, least + missing
        placed, W = _factor(comm, sites, cov, noise, neighbours, random_state)
        smallest = _smallest_eigenvalue(W, placed, random_state)
    total = Sites.of(sites, cov + Nugget(least) if least else cov)
    rtol = rtol_for(total, smallest, rtol)
    A = of_sites(comm, total, rtol)
    if not _alike(comm, A.rows.partition, placed):
        W = factor_of(comm, A.rows.partition, Sites.of(sites, cov), neighbours, noise, random_state)
    if np.ndim(noise):
        A = DistributedDiagonal(A, comm.xp.asarray(noise[A.rows.partition.points(comm.rank)] - least))
    return DistributedSystem(comm, A, W, rtol, random_state)


def _is_factored(comm, solver, sites, cov):
    """Whether every rank factors: up to FACTORED sites, where one process does and all have the memory; a call of all
    ranks."""
    fits = len(sites) <= FACTORED and comm.size * BYTES["numpy"] * len(sites) < free_memory(np) / 2
    own = comm.xp is np and fits and is_direct(solver, sites, cov)
    return all(comm.gather(bool(own), "who can factor"))


def _factored(comm, given, stabilized):
    """The DirectSystem of what `covariance_system` is given, on every rank; None where a matrix is not definite."""
    system, failure = None, None
    try:
        system = systems.covariance_system(*given, "direct", stabilized)
    except np.linalg.LinAlgError as error:
        failure = str(error)
    failures = [told for told in comm.gather(failure, "factors") if told]  # all go the same way
    if failures and comm.rank == 0:
        logger.warning("%s; taking iterations", failures[0])
    return None if failures else system


def _factor(comm, sites, cov, noise, neighbours, random_state):
    """Vecchia's factor, and the Partition of its rows: that of the matrix to come, but for large leaves."""
    placed = Sites.of(sites, cov)
    partition = shared(comm, sorted_points(comm, own_part(comm, placed.points), LEAF_SIZES[0]), LEAF_SIZE).partition
    return partition, factor_of(comm, partition, placed, neighbours, noise, random_state)


def _smallest_eigenvalue(W, partition, random_state):
    """As `solvers.smallest_eigenvalue`."""
    n = partition.tree.n
    start = np.random.default_rng(random_state).standard_normal((n, 1))[partition.points(W.comm.rank)]
    return 1 / largest_eigenvalue(W.__matmul__, W.comm.xp.asarray(start), n, dots_of(W.comm), against_of(W.comm))


def _alike(comm, one, other):
    """Whether two Partitions give every rank the same points in one order; a call of all ranks."""
    alike = np.array_equal(one.points(comm.rank), other.points(comm.rank))
    return comm.sum(np.array([float(alike)]), "whether two orders are one")[0] == comm.size
