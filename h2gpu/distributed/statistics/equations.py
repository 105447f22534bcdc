"""The kriging equations by ranks: data that all hosts have, targets that only their rank has.

mean        q(x)ᵀ γ + k(x)ᵀ w      pair by pair at own targets; of very many a rectangular distributed matrix
variance    nearest sites at own targets; exact ones by solves of all ranks, each with its own rows of k
"""

from dataclasses import dataclass, replace

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.covariance.sites import Sites
from h2gpu.distributed.assembly import of_sites
from h2gpu.distributed.matrix import gathered
from h2gpu.distributed.statistics.systems import DistributedSystem, MixedSystem, system_of
from h2gpu.progress import phase
from h2gpu.statistics import cross as cross_covariances
from h2gpu.statistics.cross import CrossCovariance
from h2gpu.statistics.equations import Equations, solved_equations
from h2gpu.statistics.inputs import seed_of
from h2gpu.statistics.variances import EXACT, Local, VarianceError, compared, drawn, tell_error, total_variances


class DistributedEquations(Equations):
    """Equations whose system is by ranks: X are the rank's own targets, perhaps none; calls of all ranks."""

    def _cross(self, X):
        return DistributedCross(self.system.comm, self._at(self.trend.sites(X)))

    def _variances(self, cross, std_rtol, random_state, added):
        return simple_variances(self.system, cross, self.noise, std_rtol, random_state, added)


class SolvedByRanks:
    """Of an estimator that every rank has, with all observations and a `comm`: its equations, the matrix by ranks."""

    def _solved(self, model, system):
        sites, noise = self._trend.sites(self._places.sites), self._places.noise(model.nugget)
        rtol, neighbours, seed, solver = self._accuracy
        system = system or system_of(self.comm, sites, model.cov, noise, rtol, neighbours, seed, solver)
        found = solved_equations(self._places, self._trend, model, *self._accuracy, system)
        return DistributedEquations(**vars(found)) if isinstance(system, (DistributedSystem, MixedSystem)) else found

    def _has_work(self, X):
        """Whether there is work at sites X: a dense or direct system is on every host, none of its work is together."""
        return len(X) > 0 or isinstance(self._equations, DistributedEquations)

    def _at_targets(self, X, with_variances, added=0.0):
        """Means and variances (m,), those plus `added`, at sites X of the rank's own targets, perhaps none."""
        if not self._has_work(X):
            return np.empty(0), np.empty(0)
        if not with_variances:
            return self._equations.means(X)[:, 0], None
        accuracy = self.std_rtol, seed_of(self.random_state)
        mean, variances, self.variance_error_ = self._equations.means_and_variances(X, *accuracy, added)
        if self.comm.rank == 0:
            tell_error(self.variance_error_, self.std_rtol)
        return mean, variances


def fitted(estimator, name):
    """An attribute that fit gave the serial estimator inside one by ranks; AttributeError for others."""
    if name.endswith("_") and not name.startswith("_"):
        return getattr(estimator._serial, name)
    kind = type(estimator).__name__
    raise AttributeError(f"{kind} by ranks has no {name!r}; h2gpu.statistics.{kind}, by one process, may")


@dataclass(frozen=True, eq=False)
class DistributedCross:
    """The CrossCovariance of a rank's targets and all sites, both on the host; work where comm.xp is."""

    comm: object
    cross: CrossCovariance

    def all_targets(self):
        """The targets of all ranks (m, dim), and where this rank's begin and end."""
        shares = self.comm.gather(self.cross.targets, "targets")
        ends = np.cumsum([0, *map(len, shares)])
        return np.concatenate(shares), int(ends[self.comm.rank]), int(ends[self.comm.rank + 1])

    def products(self, V, tolerance):
        """C V of V (n, count) that all have, (own targets, count), as `CrossCovariance.products`."""
        xp, own = self.comm.xp, replace(self.cross, **self._moved())
        m = int(self.comm.sum(np.array([own.shape[0]]), "targets")[0])
        if m * own.shape[1] > self.comm.size * cross_covariances.DIRECT and own.cov.variables is None:
            return self._hierarchical(own, V, tolerance)
        return to_host(own.products(xp.asarray(V), tolerance)) if len(own.targets) else np.empty((0, V.shape[1]))

    def _hierarchical(self, own, V, tolerance):
        """By a rectangular matrix, its rows by targets."""
        asked = own.rtol_for(V, tolerance) if len(own.targets) else 1.0
        rtol = min(self.comm.gather(asked, "rtol of cross-covariances"))
        targets, begin, end = self.all_targets()
        C = of_sites(self.comm, Sites.of(targets, self.cross.cov, self.cross.sites), rtol)
        P = gathered(self.comm, C.rows.partition, C @ C.scatter(self.comm.xp.asarray(V)))[begin:end]
        return self.cross.with_shared(P, V) if end > begin else P

    def _moved(self):
        xp = self.comm.xp
        return {"targets": xp.asarray(self.cross.targets), "sites": xp.asarray(self.cross.sites)}


def simple_variances(system, cross, noise, rtol, random_state=0, added=0.0):
    """As `statistics.variances.simple_variances`, of a DistributedCross: (own targets,) on the host."""
    comm, (targets, begin, end) = system.comm, cross.all_targets()
    m = len(targets)
    if m <= EXACT or rtol == 0:
        return exact_variances(system, cross.cross, targets)[begin:end], VarianceError(None)
    own, variances, neighbours = replace(cross.cross, **cross._moved()), np.empty(0), 0
    if end > begin:
        variances, neighbours = Local(own, noise).settled(rtol, added)
    some = drawn(m, random_state)
    mine = some[(some >= begin) & (some < end)] - begin
    found = np.concatenate(comm.gather(to_host(variances)[mine], "variances"))
    exact = exact_variances(system, cross.cross, targets[some])
    neighbours = max(comm.gather(neighbours, "variances"))
    return to_host(variances), compared(found, exact, neighbours, added)


def exact_variances(system, cross, targets):
    """C(0) − kᵀ K⁻¹ k of targets (m, dim) that all ranks have, (m,) on the host: each rank has its rows of k."""
    xp, m = system.comm.xp, len(targets)
    own = xp.asarray(cross.sites[system.own])
    variances = to_host(total_variances(replace(cross, targets=targets))).copy()
    with phase("variances", m) as advance:
        for first in range(0, m, EXACT):
            some = slice(first, min(first + EXACT, m))
            k = xp.zeros((0, some.stop - first))
            if len(own):
                k = replace(cross, targets=xp.asarray(targets[some]), sites=own).columns(slice(None))
            variances[some] -= system.explained_own(k)
            advance(some.stop - first)
    return np.maximum(variances, 0)
