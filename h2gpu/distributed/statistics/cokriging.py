"""Cokriging by ranks: `statistics.CoKriging` as `estimator.Kriging` is `statistics.Kriging`."""

from typing import Any, Self

import numpy as np

from h2gpu import statistics
from h2gpu.arrays import array_module, to_host
from h2gpu.distributed.assembly import all_points
from h2gpu.distributed.communicators.communicator import Communicator
from h2gpu.distributed.statistics.equations import SolvedByRanks, fitted
from h2gpu.distributed.statistics.likelihood import DistributedData
from h2gpu.statistics.cokriging.stacking import all_variables
from h2gpu.typing import Array, ArrayLike


class _Shared(SolvedByRanks, statistics.CoKriging):
    """The estimator that every rank has, of all observations; its matrix is by ranks."""

    def _data(self, places):
        return DistributedData(self.comm, places, self._trend, self.restricted)


class CoKriging:
    """Cokriging by ranks: arguments and results are those of `h2gpu.statistics.CoKriging`.

    cov, nugget, … as there
    comm           Communicator

    Observations are on every host, the matrix of more than 4,096 of them is by ranks. Every call is one of all ranks;
    what one raises, all raise. After fit the attributes of `h2gpu.statistics.CoKriging` that end in _ are there, equal
    on all ranks. Raises as that does.

    Source: Wackernagel (2003), chapters 24 and 25.

    >>> import numpy as np
    >>> from h2gpu import distributed
    >>> from h2gpu.covariance import MultivariateMatern
    >>> from h2gpu.distributed.statistics import CoKriging
    >>> comm = distributed.communicator()  # one process here; more under mpiexec
    >>> x = np.array_split(np.linspace(0, 1, 40)[:, None], comm.size)[comm.rank]
    >>> Y = np.hstack([np.sin(6 * x), np.sin(6 * x) + 0.1])
    >>> cov = MultivariateMatern((1.0, 1.0), 0.2, (1.5, 1.5), 0.95, space_dimension=1)
    >>> mean = CoKriging(cov, comm=comm).fit(x, Y).predict([[0.51]])
    >>> bool(abs(mean[0, 0] - np.sin(6 * 0.51)) < 0.01)
    True
    """

    def __init__(self, cov: Any, *arguments: Any, comm: Communicator, **options: Any) -> None:
        self.comm = comm
        self._serial = _Shared(cov, *arguments, **options)
        self._serial.comm = comm

    def __getattr__(self, name):
        return fitted(self, name)

    def fit(self, my_X: ArrayLike, my_Y: ArrayLike) -> Self:
        """Solve the cokriging equations for observations of which this rank gives a share.

        my_X   (n_r, d), the shares following one another by rank, perhaps empty
        my_Y   (n_r, p), NaN where a variable was not observed

        Raises as `h2gpu.statistics.CoKriging.fit`, on all ranks.
        """
        with self.comm.together("fit"):
            X, Y = all_points(self.comm, my_X), to_host(my_Y)
            if np.ndim(Y) != 2 or len(Y) != len(my_X):
                raise ValueError(f"my_Y: expected {len(my_X)} rows as my_X has, a column a variable, got {np.shape(Y)}")
            self._serial.fit(X, np.concatenate(self.comm.gather(Y, "observations")))
        return self

    def predict(
        self, my_X: ArrayLike, return_std: bool = False, observations: bool = False
    ) -> Array | tuple[Array, Array]:
        """Means (m_r, p) at this rank's targets my_X (m_r, d), perhaps none; and standard deviations.

        return_std, observations   as for `h2gpu.statistics.CoKriging.predict`, the same on all ranks

        Raises as that does, on all ranks.
        """
        with self.comm.together("predict"):
            serial, X, xp = self._serial, to_host(my_X), array_module(my_X)
            X = serial._targets(X) if len(X) else np.empty((0, serial.n_features_in_))
            p = serial.n_variables_
            sites, shape = all_variables(X, p), (len(X), p)
            mean, variances = serial._at_targets(sites, return_std)
            mean = xp.asarray(mean.reshape(shape) + serial._means(p))
            if not return_std:
                return mean
            added = serial.nugget_ if observations else 0.0
            return mean, xp.asarray(np.sqrt(variances.reshape(shape) + added))
