"""Vecchia's approximation: a sparse inverse Cholesky factor of a covariance matrix.

    A⁻¹ ≈ Wᵀ W,   row i of W:  L⁻ᵀ e_last,  L Lᵀ = A[s, s],  s = (N(i), i),   N(i) the m nearest of the sites before i

Of all lower triangular W with these entries it minimizes the Kullback–Leibler divergence, and diag(W A Wᵀ) = 1 exactly.

Reference: Vecchia (1988); Schäfer, Katzfuss & Owhadi (2021), theorem 2.1.
"""

import numpy as np

from h2gpu.arrays import any_array, array_module, to_host
from h2gpu.batched.device.threads import parallel
from h2gpu.covariance.base import Covariance
from h2gpu.covariance.sites import Sites
from h2gpu.progress import phase
from h2gpu.solvers.inverse_factor import InverseFactor, sparse_rows
from h2gpu.solvers.neighbours import nearest_earlier
from h2gpu.solvers.operators import check_nuggets
from h2gpu.solvers.ordering import maximin_order
from h2gpu.solvers.small_factors import cholesky, covariances, last_rows, leading_rows, together
from h2gpu.texts import brief
from h2gpu.typing import ArrayLike, Seed

REPORTED = 64  # chunks between two reports of progress


@any_array
def vecchia(
    points: ArrayLike, cov: Covariance, neighbours: int = 30, *, nugget: float = 0.0, random_state: Seed = 0
) -> InverseFactor:
    """The sparse inverse Cholesky factor of the covariance matrix at (n, dim) points: an InverseFactor.

    points        NumPy array (work on the CPU) or CuPy array (on the GPU; order and neighbours are found on the host)
    cov           an `h2gpu.covariance` value, its nugget included
    neighbours    earlier sites that a row may use; with n − 1 the factor is exact
    nugget        added to the diagonal in addition: one number, or one a site, (n,) on the host
    random_state  seed of the order

    Raises ValueError for bad arguments, LinAlgError where the covariance is not positive definite.
    Source: Vecchia (1988); Schäfer, Katzfuss & Owhadi (2021), theorem 2.1; Katzfuss & Guinness (2021); Guinness (2018)
    for the order.

    >>> import numpy as np
    >>> from h2gpu import covariance, solvers
    >>> sites = np.random.default_rng(0).random((400, 2))
    >>> cov = covariance.Exponential(length_scale=0.3) + covariance.Nugget(0.1)
    >>> K = cov(sites)
    >>> W = solvers.vecchia(sites, cov, neighbours=399)  # all of them: exact
    >>> bool(np.allclose(W @ (K @ np.ones(400)), 1))
    True
    """
    located = Sites.of(points, cov)
    x, cov = located.points, located.cov
    if not isinstance(neighbours, (int, np.integer)) or neighbours < 0:
        raise ValueError(f"neighbours: expected an integer ≥ 0, got {brief(neighbours)}; 30 is the usual choice")
    nugget = check_nuggets(nugget, len(x)) + cov.nugget
    n, m, xp = len(x), min(int(neighbours), len(x) - 1), array_module(x)
    with phase("order"):
        host = to_host(x)
        order, places = maximin_order(host, random_state)
        sites = np.concatenate([nearest_earlier(host[order], places, m), np.arange(m, n)[:, None]], axis=1)
    x64 = x[xp.asarray(order)].astype(np.float64)
    nugget = xp.asarray(nugget[order])
    head, repaired = head_of(cov.pair_function, x64[:m], nugget[:m])
    data = xp.empty(len(head) + sites.size)
    data[: len(head)] = head
    _, more = rows_of(cov.pair_function, x64, nugget, sites, data[len(head) :].reshape(sites.shape))
    indices = np.concatenate([np.tril_indices(m)[1], sites.ravel()]).astype(np.int32)
    counts = np.concatenate([np.arange(1, m + 1), np.full(n - m, m + 1)])
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32 if len(indices) < 2**31 else np.int64)
    W = sparse_rows(data.astype(x.dtype, copy=False), indices, indptr, n)
    return InverseFactor(order, W, repaired + more)


def head_of(values, x, nugget):
    """The first rows of W, one a point of x with its nugget, by one dense factorization: their lower triangle row by
    row, and how many of them were regularized."""
    xp, m = array_module(x), len(x)
    if not m:
        return xp.empty(0), 0
    L, bad = cholesky(covariances(values, x[None], nugget))
    return leading_rows(L), m * int(bad[0])


def rows_of(values, x, nugget, sites, W=None):
    """The rows of W for sites (count, m + 1), a row's own site last, in W if given, and how many were regularized."""
    xp = array_module(x)
    step = together(xp, sites.shape[1])
    W = xp.empty(sites.shape) if W is None else W
    starts, regularized = range(0, len(sites), step), 0

    def work(start):
        own = slice(start, start + step)
        some = xp.asarray(sites[own])
        L, bad = cholesky(covariances(values, x[some], nugget[some]))
        W[own] = last_rows(L)
        return int(np.count_nonzero(to_host(bad)))

    with phase("vecchia", len(sites)) as advance:
        for first in range(0, len(starts), REPORTED):
            some = starts[first : first + REPORTED]
            regularized += sum(parallel(work, some) if xp is np else map(work, some))
            advance(min(len(some) * step, len(sites) - some[0]))
    return W, regularized
