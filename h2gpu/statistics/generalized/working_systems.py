"""Systems of K = C + W⁻¹ for one covariance and working noises that change from step to step.

    few places   dense
    many         Vecchia's K⁻¹ ≈ VᵀV on rows chosen once, for estimation; an H²-matrix of C, built once, for the rest

Reference: Zilber & Katzfuss (2021), Vecchia–Laplace approximations of generalized Gaussian processes.
"""

from dataclasses import dataclass

import numpy as np

from h2gpu import solvers
from h2gpu.arrays import array_module, to_host
from h2gpu.covariance.sites import Sites
from h2gpu.h2matrix import covariance_matrix
from h2gpu.solvers.inverse_factor import InverseFactor, sparse_rows
from h2gpu.solvers.vecchia import head_of, rows_of
from h2gpu.statistics import systems
from h2gpu.statistics.systems import HierarchicalSystem, WithDiagonal, dense_system


def exact_systems(sites, cov, rtol, neighbours, random_state):
    """Function of the noise (places,) that gives a DenseSystem, or of many sites a HierarchicalSystem."""
    if len(sites) <= systems.DENSE:
        return lambda noise: dense_system(sites, cov, noise)
    return _Hierarchical(sites, cov, rtol, neighbours, random_state)


class _Hierarchical:
    """Systems that share the H²-matrix of C; it is made again, more accurately, where a noise needs that."""

    def __init__(self, sites, cov, rtol, neighbours, random_state):
        self.sites, self.cov, self.rtol = sites, cov, rtol
        self.options = {"neighbours": neighbours, "random_state": random_state}
        self.C = None

    def __call__(self, noise):
        state = self.options["random_state"]
        W = solvers.vecchia(self.sites, self.cov, nugget=noise, **self.options)
        needed = solvers.sufficient_rtol(self.sites, self.cov, W, highest=self.rtol, random_state=state)
        if self.C is None or needed < self.rtol:
            self.rtol, self.C = needed, covariance_matrix(self.sites, self.cov, needed)
        K = WithDiagonal(self.C, array_module(self.sites).asarray(noise))
        return HierarchicalSystem(K, W, self.rtol, random_state=state)


@dataclass(frozen=True, eq=False)
class VecchiaSystem:
    """K⁻¹ ≈ VᵀV."""

    V: InverseFactor
    exact = False
    iterations = 0

    def solve(self, B):
        """VᵀV B of B (places, count)."""
        return self.V @ B

    @property
    def inverse_diagonal(self):
        """diag VᵀV."""
        return self.V.squared_columns


def vecchia_systems(rows, cov):
    """Function of the noise (places,) that gives the VecchiaSystem of `vecchia_moments.VecchiaRows`."""
    located = Sites.of(rows.sites, cov)
    x, own = located.points, located.cov
    xp, m, n = array_module(x), len(rows.head), len(x)
    order = np.concatenate([rows.head, rows.tail[:, -1]])
    position = np.argsort(order).astype(np.int32)
    indices = np.concatenate([np.tril_indices(m)[1].astype(np.int32), position[rows.tail].ravel()])
    counts = np.concatenate([np.arange(1, m + 1), np.full(n - m, m + 1)])
    indptr = np.concatenate([[0], np.cumsum(counts)])

    def system(noise):
        nugget = xp.asarray(noise + own.nugget)
        head, more = head_of(own.pair_function, x[xp.asarray(rows.head)], nugget[xp.asarray(rows.head)])
        tail, repaired = rows_of(own.pair_function, x, nugget, rows.tail)
        V = sparse_rows(xp.concatenate([head, tail.ravel()]), indices, indptr, n)
        return VecchiaSystem(InverseFactor(order, V, more + repaired))

    return system


def inverse_diagonal(system):
    """diag K⁻¹ (places,) on the host, of a DenseSystem exactly, else by Vecchia's factor."""
    if hasattr(system, "inverse_diagonal"):
        return to_host(system.inverse_diagonal)
    if not system.exact:
        return to_host(system.W.squared_columns)
    half = system.solve_half(array_module(system.L).eye(len(system.L)))
    return to_host((half**2).sum(axis=0))
