"""Kriging of more sites than one process or GPU holds the matrix of: `statistics.Kriging` by ranks.

shares of observations → all on every host → the matrix by ranks → weights on all → predictions at own targets
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from h2gpu import statistics
from h2gpu.arrays import array_module, to_host
from h2gpu.distributed.assembly import all_points
from h2gpu.distributed.communicators.communicator import Communicator
from h2gpu.distributed.statistics.equations import SolvedByRanks, fitted
from h2gpu.distributed.statistics.likelihood import DistributedData
from h2gpu.distributed.statistics.systems import system_of
from h2gpu.statistics.inputs import targets
from h2gpu.statistics.likelihood.log_likelihood import LogLikelihood
from h2gpu.statistics.scores import r_squared
from h2gpu.statistics.simulation import checked_count, field_samples, generator, given_data
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike, Seed, TrendLike


class _Shared(SolvedByRanks, statistics.Kriging):
    """The estimator that every rank has, of all observations; its matrix is by ranks."""

    def _data(self):
        return DistributedData(self.comm, self._places, self._trend, self.restricted)


class Kriging:
    """Kriging by ranks, of any number of sites: arguments and results are those of `h2gpu.statistics.Kriging`.

    cov, nugget, trend, rtol, fit_parameters, restricted, refine, mean, neighbours, std_rtol, missing, random_state
               as there
    solver     of more than 4,096 places, "iterative": by ranks; "auto": where one process factors up to 32,768 places,
               every rank does so, and predicts at its own targets alone
    comm       Communicator
    verbose    as there, on rank 0

    Observations and vectors of all sites are on every host, 8 bytes a number; the matrix and Vecchia's factor are by
    ranks. Every call is one of all ranks; what one raises, all raise. After fit the attributes of
    `h2gpu.statistics.Kriging` that end in _ are there, equal on all ranks, of all sites. Raises as that does.

    Source: Cressie (1993), chapter 3; Guinness (2021) for the estimation.

    >>> import numpy as np
    >>> from h2gpu import covariance, distributed
    >>> from h2gpu.distributed.statistics import Kriging
    >>> comm = distributed.communicator()  # one process here; more under mpiexec
    >>> sites = np.random.default_rng(0).random((600, 2))
    >>> share = np.array_split(np.arange(600), comm.size)[comm.rank]
    >>> kriging = Kriging(covariance.Exponential(length_scale=0.3), comm=comm)
    >>> _ = kriging.fit(sites[share], np.sin(6 * sites[share, 0]))
    >>> mean, std = kriging.predict(sites[share][:5], return_std=True)
    >>> bool(np.allclose(mean, np.sin(6 * sites[share][:5, 0]))), bool(std.max() < 1e-6)
    (True, True)
    """

    def __init__(
        self,
        cov: Any,
        nugget: float = 0.0,
        trend: TrendLike = "constant",
        rtol: float = 1e-6,
        *,
        comm: Communicator,
        fit_parameters: bool | Sequence[str] = False,
        restricted: bool = False,
        refine: bool = True,
        mean: float = 0.0,
        neighbours: int = 30,
        solver: str = "auto",
        std_rtol: float = 0.01,
        missing: str = "raise",
        random_state: Seed = 0,
        verbose: int = 0,
    ) -> None:
        self.comm = comm
        if solver not in ("auto", "iterative"):
            raise ValueError(f'solver: expected "auto" or "iterative" by ranks, got {brief(solver)}')
        options = {"fit_parameters": fit_parameters, "restricted": restricted, "refine": refine, "mean": mean}
        options |= {
            "neighbours": neighbours,
            "std_rtol": std_rtol,
            "missing": missing,
            "random_state": random_state,
            "solver": solver,
        }
        quiet = 0 if comm.rank else verbose
        self._serial = _Shared(cov, nugget, trend, rtol, verbose=quiet, **options)
        self._serial.comm = comm

    def __getattr__(self, name):
        return fitted(self, name)

    def fit(self, my_X: ArrayLike, my_y: ArrayLike, my_weight: ArrayLike | None = None) -> Self:
        """Solve the kriging equations for observations of which this rank gives a share.

        my_X        (n_r, features), the shares following one another by rank, perhaps empty
        my_y        (n_r,)
        my_weight   (n_r,), on all ranks or on none: as sample_weight of `h2gpu.statistics.Kriging.fit`

        Raises as that does, on all ranks.
        """
        with self.comm.together("fit"):
            X, y = all_points(self.comm, my_X), to_host(my_y)
            weight = y[:0] if my_weight is None else to_host(my_weight)
            if len(y) != len(my_X) or len(weight) not in (0, len(y)):
                raise ValueError(
                    f"my_y: expected {len(my_X)} values as my_X has rows, got {len(y)}, {len(weight)} weights"
                )
            y, weight = (np.concatenate(self.comm.gather(part, "observations")) for part in (y, weight))
            if len(weight) not in (0, len(y)):
                raise ValueError(f"my_weight: expected weights on all ranks or on none, got {len(weight)} of {len(y)}")
            self._serial.fit(X, y, weight if len(weight) else None)
        return self

    def predict(
        self, my_X: ArrayLike, return_std: bool = False, observations: bool = False
    ) -> Array | tuple[Array, Array]:
        """Means (m_r,) at this rank's targets my_X (m_r, features), perhaps none; and standard deviations.

        return_std, observations   as for `h2gpu.statistics.Kriging.predict`, the same on all ranks

        Raises as that does, on all ranks.
        """
        with self.comm.together("predict"):
            X, serial = self._targets(my_X), self._serial
            xp, added = array_module(my_X), serial.nugget_ if observations else 0.0
            mean, variances = serial._at_targets(X, return_std, added)
            mean = xp.asarray(mean + serial._known_mean())
            return (mean, xp.asarray(np.sqrt(variances))) if return_std else mean

    def score(self, my_X: ArrayLike, my_y: ArrayLike) -> float:
        """R² of all observations my_y (m_r,) at my_X (m_r, features), of which each rank gives a share.

        Raises as `predict`.
        """
        predicted = self.predict(my_X)
        with self.comm.together("score"):
            pairs = self.comm.gather((to_host(my_y), to_host(predicted)), "scores")
            return r_squared(*(np.concatenate(part) for part in zip(*pairs)))

    def sample_y(self, my_X: ArrayLike, n_samples: int = 1, random_state: Seed = 0) -> Array:
        """Conditional simulation: samples (m_r, n_samples) of the field at this rank's targets, one field over all.

        Those of `h2gpu.statistics.Kriging.sample_y` at the targets of all ranks, of one seed. Raises as that does.
        """
        with self.comm.together("sample_y"):
            X, serial, count = self._targets(my_X), self._serial, checked_count(n_samples)
            equations, rng = serial._equations, generator(random_state)
            shares = self.comm.gather(equations.trend.sites(X), "targets")
            n, before = len(equations.sites), sum(map(len, shares[: self.comm.rank]))
            both = np.concatenate([equations.sites, *shares])
            Z = field_samples(equations.cov, both, count, rng, equations.rtol, serial.neighbours, self._system_of)
            own = Z[n + before : n + before + len(X)]
            if not serial._has_work(X):
                return array_module(my_X).asarray(own)
            return array_module(my_X).asarray(given_data(equations, X, Z[:n], own, rng) + serial._known_mean())

    def log_marginal_likelihood(self, gradient: bool = False) -> LogLikelihood:
        """As `h2gpu.statistics.Kriging.log_marginal_likelihood`, equal on all ranks. Raises as that does."""
        with self.comm.together("log_marginal_likelihood"):
            return self._serial.log_marginal_likelihood(gradient)

    def _system_of(self, *arguments, stabilized):
        return system_of(self.comm, *arguments, self._serial.solver, stabilized)

    def _targets(self, my_X):
        """The rank's targets on the host, checked."""
        X = to_host(my_X)
        if len(X):
            return targets(self._serial, X)
        return np.empty((0, self._serial.n_features_in_))
