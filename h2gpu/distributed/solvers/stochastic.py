"""Log-determinants and square roots by ranks: the Lanczos runs of the serial ones, with dot products over all ranks.

    log det (A + nugget I) = tr log B − 2 Σ log w_ii,     B = W (A + nugget I) Wᵀ
    S = W⁻¹ B^½ = (A + nugget I) Wᵀ B^−½:     no triangular system, whose rows would wait for each other

The same seed gives the same signs as in the serial one. See `solvers.log_determinant`, `solvers.square_root`.
"""

from math import hypot
from typing import Any

import numpy as np

from h2gpu.arrays import array_module
from h2gpu.covariance.checks import checked
from h2gpu.distributed.matrix import DistributedH2Matrix
from h2gpu.distributed.solvers.inverse_factor import DistributedInverseFactor
from h2gpu.progress import phase
from h2gpu.solvers.log_determinant import TOGETHER, LogDeterminant, mean_of, quadrature, signs
from h2gpu.solvers.operators import check_vectors, column_dots, shifted
from h2gpu.solvers.square_root import root_of
from h2gpu.texts import brief
from h2gpu.typing import Array, Seed

NAME = "dot products"


def log_determinant(
    A: DistributedH2Matrix,
    preconditioner: DistributedInverseFactor,
    *,
    nugget: float = 0.0,
    atol: float | None = None,
    probes: int = 16,
    most: int = 1024,
    maximum: int = 300,
    trace: Any = None,
    random_state: Seed = 0,
) -> LogDeterminant:
    """log det (A + nugget I): a LogDeterminant, the same on all ranks; a call of all ranks.

    A               symmetric positive definite DistributedH2Matrix
    preconditioner  `distributed.solvers.vecchia(…)`
    others          as for the serial one

    Raises as `h2gpu.solvers.log_determinant`, on all ranks. Source: Ubaru, Chen & Saad (2017).

    >>> import numpy as np
    >>> from h2gpu import covariance, distributed
    >>> comm = distributed.communicator()  # one process here; more under mpiexec
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), covariance.Exponential(length_scale=0.3)
    >>> cov = cov + covariance.Nugget(0.1)
    >>> A = distributed.covariance_matrix(sites, cov, rtol=1e-6, comm=comm)
    >>> W = distributed.solvers.vecchia(A, sites, cov)
    >>> told = distributed.solvers.log_determinant(A, W, trace=600)
    >>> bool(abs(told.value - np.linalg.slogdet(cov(sites))[1]) <= 5 * told.standard_error + 1e-3)
    True
    """
    with A.comm.together("log-determinant"):
        for name, value in (("probes", probes), ("most", most), ("maximum", maximum)):
            if not isinstance(value, (int, np.integer)) or value < 2:
                raise ValueError(f"{name}: expected an integer ≥ 2, got {brief(value)}")
        n, rows, atol = A.shape[0], preconditioner.positions, 0.0 if atol is None else checked("atol", atol)
        apply, rng, limit = _whitened(A, preconditioner, nugget), np.random.default_rng(random_state), probes
        limit = most if atol else probes
        logs, linear, change, steps, error = np.empty(0), np.empty(0), 0.0, 0, np.inf
        with phase("log-determinant", limit) as advance:
            while len(logs) < min(probes, limit) or (len(logs) < limit and hypot(error, change) > atol):
                Z = A.xp.asarray(signs(rng, n, min(TOGETHER, limit - len(logs)), np, A.dtype)[rows])
                new, first, last_change, taken = quadrature(apply, Z, n, atol, maximum, dots_of(A.comm))
                logs, linear = np.append(logs, new), np.append(linear, first)
                change, steps = max(change, last_change), max(steps, taken)
                value, error = mean_of(logs, linear, trace)
                advance(len(new))
        return LogDeterminant(value + preconditioner.log_determinant, error, change, len(logs), steps)


def square_root(
    A: DistributedH2Matrix,
    x: Array,
    preconditioner: DistributedInverseFactor,
    *,
    nugget: float = 0.0,
    rtol: float = 1e-6,
    maximum: int = 300,
) -> Array:
    """S x with S Sᵀ = A + nugget I: of that covariance for x of independent standard normal numbers.

    x   (own,) or (own, count): entry i belongs to row `preconditioner.positions[i]` of W; others as for the serial one

    Simulations at the rank's points, in tree order. Raises as the serial one does, on all ranks.
    Source: Chow & Saad (2014).

    >>> import numpy as np
    >>> from h2gpu import covariance, distributed
    >>> comm = distributed.communicator()  # one process here; more under mpiexec
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), covariance.Exponential(length_scale=0.3)
    >>> cov = cov + covariance.Nugget(0.1)
    >>> A = distributed.covariance_matrix(sites, cov, rtol=1e-6, comm=comm)
    >>> W = distributed.solvers.vecchia(A, sites, cov)
    >>> z = np.random.default_rng(1).standard_normal(600)
    >>> field = A.gather(distributed.solvers.square_root(A, A.scatter(z), W))
    >>> field.shape
    (600,)
    """
    with A.comm.together("square root"):
        x = check_vectors(x, A.local_shape[0], "x")
        if not 0 < rtol < 1:
            raise ValueError(f"rtol: expected a number between 0 and 1, got {brief(rtol)}")
        X = x.reshape(len(x), 1 if x.ndim == 1 else x.shape[1])
        apply = _whitened(A, preconditioner, nugget)
        root = root_of(apply, X, rtol, maximum, -0.5, dots_of(A.comm), against_of(A.comm))
        return shifted(A, nugget)(preconditioner.whiten_transposed(root)).reshape(x.shape)


def dots_of(comm):
    """(X, Y) → x_jᵀ y_j over all ranks, where X is."""

    def dots(X, Y):
        return array_module(X).asarray(comm.sum(comm.fetch(column_dots(X, Y), NAME), NAME))

    return dots


def against_of(comm):
    """(basis, U) → the columns of U less their parts in the basis, twice, since the parts are found all at once.

    Two sums over the ranks, whatever the basis: one after the other they were 465 in thirty steps of Lanczos.
    """

    def against(basis, U):
        xp = array_module(U)
        for _ in range(2):
            parts = comm.sum(comm.fetch(xp.stack([column_dots(Q, U) for Q in basis]), NAME), NAME)
            U = U - sum(Q * xp.asarray(part) for Q, part in zip(basis, parts))
        return U

    return against


def _whitened(A, W, nugget):
    """x → W (A + nugget I) Wᵀ x."""
    apply = shifted(A, nugget)
    return lambda x: W.whiten(apply(W.whiten_transposed(x)))
