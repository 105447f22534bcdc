"""Vecchia's likelihood by ranks: rows are independent of each other, so that each rank takes a share of them.

log det K, M and their derivatives are sums over rows:  one sum over the ranks a likelihood
"""

from dataclasses import replace

import numpy as np

from h2gpu.distributed.statistics.systems import system_of
from h2gpu.statistics import systems
from h2gpu.statistics.likelihood.hierarchical_moments import hierarchical_moments
from h2gpu.statistics.likelihood.log_likelihood import Data
from h2gpu.statistics.likelihood.moments import Moments
from h2gpu.statistics.likelihood.vecchia_moments import vecchia_moments
from h2gpu.statistics.systems.direct import DirectSystem

NAME = "likelihood"


class DistributedData(Data):
    """`likelihood.Data` that all ranks have; a call of all ranks."""

    def __init__(self, comm, places, trend, restricted=False):
        super().__init__(places, trend, restricted)
        self.comm = comm

    def system(self, model, *, rtol, neighbours, random_state, solver="iterative"):
        """The covariance system of a model, by ranks, or on every one."""
        given = self.sites, model.cov, self.places.noise(model.nugget)
        return system_of(self.comm, *given, rtol, neighbours, random_state, solver)

    def vecchia(self, model, rows, gradient=True):
        """The LogLikelihood by Vecchia's approximation and its Moments, equal to the last bit on all ranks."""
        moments = self._of_rows(model, rows, self.places.noise, self.B, gradient)
        return self.combined(model, moments), moments

    def _moments(self, model, gradient, *, system=None, solver=None, **options):
        """By the system that kriging has."""
        whole = super()._moments
        if len(self.B) <= systems.DENSE:
            return whole(model, gradient, system=system, **options)
        if isinstance(system, DirectSystem):
            found = self._together(lambda: whole(model, gradient, solver="direct", system=system, **options))
            return self._of_the_first(found)
        given = model, self.sites, self.places.noise, self.B, gradient
        return hierarchical_moments(*given, system=system, of_rows=self._of_rows, **options)

    def _of_the_first(self, moments):
        """The Moments that rank 0 has, where every rank factored: others may differ in the last bit."""
        own = {name: value for name, value in vars(moments).items() if name != "information"}
        told = self.comm.gather(own, NAME)[0]

        def information(c):
            return self.comm.gather(moments.information(c), NAME)[0]

        return Moments(**told, information=moments.information and information)

    def _of_rows(self, model, rows, noise, B, gradient=False):
        """As `vecchia_moments`, of all rows: sums over the ranks of what each has of its share."""
        moments = self._together(lambda: vecchia_moments(model, _share(self.comm, rows), noise, B, gradient))
        size, p = len(model.names), B.shape[1]
        parts = [np.atleast_1d(moments.log_determinant), moments.gram.ravel()]
        parts += [moments.slopes, moments.gram_slopes.ravel()] if gradient else []
        logdet, *rest = self.comm.sum(np.concatenate(parts), NAME)
        gram, rest = np.reshape(rest[: p * p], (p, p)), rest[p * p :]
        if not gradient:
            return Moments(logdet, gram)

        def information(c):
            return self.comm.sum(moments.information(c), NAME)

        return Moments(logdet, gram, np.array(rest[:size]), np.reshape(rest[size:], (size, p, p)), information)

    def _together(self, work):
        """What work() gives; LinAlgError on all ranks where one has it, which rules a model out and ends nothing."""
        found, error = None, None
        try:
            found = work()
        except np.linalg.LinAlgError as failed:
            error = failed
        if self.comm.sum(np.array([float(error is not None)]), NAME)[0]:
            raise np.linalg.LinAlgError(str(error or "the covariance of some sites on another rank"))
        return found


def _share(comm, rows):
    """A rank's part of VecchiaRows: of the tail every size-th row; the head on rank 0."""
    return replace(rows, head=rows.head if comm.rank == 0 else rows.head[:0], tail=rows.tail[comm.rank :: comm.size])
