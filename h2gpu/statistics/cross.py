"""Covariances between targets and sites, C(x_i, s_j), and their products with a few vectors.

    few pairs   evaluated where they are used, chunk by chunk     exact
    many        a rectangular H²-matrix                           |E w|_rms about as asked for

Variation below the sampling distance, the nugget of the covariance itself, is shared by a target and a site at the very
same place: there kriging without measurement error returns the observation.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree

from h2gpu.arrays import array_module, to_host
from h2gpu.batched.device.threads import parallel
from h2gpu.covariance.pairs import values_between
from h2gpu.covariance.sites import Sites
from h2gpu.h2matrix import covariance_matrix
from h2gpu.progress import phase
from h2gpu.solvers.neighbours import nearest

DIRECT = 1 << 33  # pairs up to which they are evaluated (2 cores, 10⁹ pairs: 3 s for Matérn 3/2, 12 s for Matérn 2.3)
CHUNK = {"numpy": 1 << 19, "cupy": 1 << 26}  # pairs at a time
REPORTED = 32  # chunks between two reports of progress
LOWEST, HIGHEST = 1e-13, 1e-3  # rtol of an H²-matrix


@dataclass(frozen=True, eq=False)
class CrossCovariance:
    """C of (m, dim) targets and (n, dim) sites, for one covariance.

    targets, sites   float64 coordinates as users give them, where the work is to be done
    cov              its own nugget is variation below the sampling distance
    shared           whether a target and a site at one place share that variation; parts of an area do not
    """

    targets: object
    sites: object
    cov: object
    shared: bool = True

    @property
    def shape(self):
        """(m, n)."""
        return len(self.targets), len(self.sites)

    @cached_property
    def located(self):
        """Targets as rows and sites as columns, in the covariance's own coordinates and units."""
        return Sites.of(self.targets, self.cov, self.sites)

    @cached_property
    def coincident(self):
        """(targets, sites) indices on the host of those at one place; none where the covariance has no nugget."""
        if not (self.cov.nugget and self.shared):
            return np.empty((2, 0), np.int64)
        x, y = to_host(self.targets), to_host(self.sites)
        distance, j = (found[:, 0] for found in nearest(cKDTree(y), x, 1))
        i = np.flatnonzero(distance == 0)
        return np.stack([i, j[i]])

    def of(self, some):
        """The same for some of the targets, indices on the host."""
        return replace(self, targets=self.targets[array_module(self.targets).asarray(some)])

    def columns(self, some):
        """C(sites, targets[some]), (n, count), for a slice."""
        x, y, xp = self.located.points, self.located.columns, self.located.xp
        C = values_between(self.located.cov, y, x[some])
        i, j = self.coincident
        first, stop, _ = some.indices(len(x))
        here = (i >= first) & (i < stop)
        if here.any():
            C[xp.asarray(j[here]), xp.asarray(i[here] - first)] += self.cov.nugget
        return C

    def products(self, V, tolerance):
        """C V of V (n, count), (m, count); where evaluated by an H²-matrix, its root mean square error by column is
        about `tolerance` (count,) or less."""
        m, n = self.shape
        P = self.evaluated(V) if m * n <= DIRECT or self.cov.variables else self._hierarchical(V, tolerance)
        return self.with_shared(P, V)

    def with_shared(self, P, V):
        """P with what targets at sites share with these."""
        i, j = self.coincident
        xp = array_module(V)
        if len(i):
            P[xp.asarray(i)] += self.cov.nugget * V[xp.asarray(j)]
        return P

    def evaluated(self, V):
        """C V without what is shared at one place, pair by pair."""
        x, y, cov = self.located.points, self.located.columns, self.located.cov
        xp, (m, n) = array_module(V), self.shape
        rows = max(1, CHUNK[xp.__name__] // n)
        P, starts = xp.empty((m, V.shape[1])), range(0, m, rows)

        def work(start):
            P[start : start + rows] = values_between(cov, x[start : start + rows], y) @ V

        with phase("cross-covariances", m) as advance:
            for first in range(0, len(starts), REPORTED):
                some = starts[first : first + REPORTED]
                parallel(work, some) if xp is np else [work(start) for start in some]
                advance(min(len(some) * rows, m - some[0]))
        return P

    def _hierarchical(self, V, tolerance):
        return covariance_matrix(self.targets, self.cov, self.rtol_for(V, tolerance), col_points=self.sites) @ V

    def rtol_for(self, V, tolerance):
        """rtol ‖C‖_F ‖v‖ / √(m n) ≤ tolerance for every column v: errors of the entries of C are of either sign."""
        m, n = self.shape
        norms = self.located.norm * np.linalg.norm(to_host(V), axis=0) / (m * n) ** 0.5
        allowed = np.divide(tolerance, norms, out=np.ones(len(norms)), where=norms > 0)
        return float(np.clip(allowed.min(initial=1.0), LOWEST, HIGHEST))
