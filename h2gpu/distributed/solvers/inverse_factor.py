"""Vecchia's sparse inverse factor by ranks: row i of W belongs to the owner of its site.

    W x:   x at neighbours that others own comes in one exchange         Wᵀ z:   what belongs to them goes back

Order and neighbours are those of `solvers.vecchia`, to the last bit. Neighbours and rows are found by their owners, and
for the order, which every host has, distances from nearest sites by shares. Its levels are chosen on every host, by all
its threads.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from h2gpu.arrays import array_module, to_host
from h2gpu.covariance.base import Covariance
from h2gpu.covariance.sites import Sites
from h2gpu.distributed.assembly import all_points
from h2gpu.distributed.ghosts import Halo, travel, travel_back
from h2gpu.distributed.matrix import DistributedH2Matrix, permutation_of
from h2gpu.distributed.trees.exchange import swapped
from h2gpu.progress import phase
from h2gpu.solvers.inverse_factor import times
from h2gpu.solvers.neighbours import nearest_earlier_of
from h2gpu.solvers.operators import check_nuggets
from h2gpu.solvers.ordering import maximin_order, nearest_distances
from h2gpu.solvers.vecchia import head_of, rows_of
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike, Seed

NAME = "sites of Vecchia's rows"


@dataclass(frozen=True, eq=False)
class DistributedInverseFactor:
    """A⁻¹ ≈ Wᵀ W; `P @ x` is Wᵀ W x of local vectors, together with all ranks.

    comm        Communicator
    positions   (own,) of the rank's rows in the order of all, ascending
    W           (own rows, own sites + ghosts) sparse
    Wt          its transpose
    halo        Halo of the ghosts
    log_determinant   −2 Σ log w_ii over all ranks, the approximate log det A

    Made by `vecchia`. Products raise ValueError for vectors of another length.
    Source: Vecchia (1988); Schäfer, Katzfuss & Owhadi (2021), theorem 2.1.

    >>> import numpy as np
    >>> from h2gpu import covariance, distributed
    >>> comm = distributed.communicator()  # one process here; more under mpiexec
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), covariance.Exponential(length_scale=0.3)
    >>> cov = cov + covariance.Nugget(0.1)
    >>> A = distributed.covariance_matrix(sites, cov, rtol=1e-6, comm=comm)
    >>> W = distributed.solvers.vecchia(A, sites, cov)
    >>> bool(np.isclose(W.log_determinant, np.linalg.slogdet(cov(sites))[1], rtol=0.05))
    True
    """

    comm: object
    positions: np.ndarray
    W: object
    Wt: object
    halo: Halo
    log_determinant: float

    __array_ufunc__ = None

    def __matmul__(self, x: Array) -> Array:
        """Wᵀ W x."""
        return self.whiten_transposed(self.whiten(x))

    def whiten(self, x: Array) -> Array:
        """W x."""
        x, shape = _block(x)
        (ghosts,) = travel(self.comm, (self.halo,), (x,), NAME)()
        return times(self.W, array_module(x).concatenate([x, ghosts])).reshape(shape)

    def whiten_transposed(self, z: Array) -> Array:
        """Wᵀ z."""
        z, shape = _block(z)
        y, own = times(self.Wt, z), len(z)
        (more,) = travel_back(self.comm, (self.halo,), (y[own:],), NAME)((own,))
        return (y[:own] + more).reshape(shape)


def vecchia(
    A: DistributedH2Matrix,
    my_points: ArrayLike,
    cov: Covariance,
    neighbours: int = 30,
    *,
    nugget: float = 0.0,
    random_state: Seed = 0,
) -> "DistributedInverseFactor":
    """The sparse inverse factor of the covariance at the points of A, by ranks: a DistributedInverseFactor.

    A           DistributedH2Matrix of these points: says which rank owns which
    my_points   as for `distributed.covariance_matrix`
    others      as for `solvers.vecchia`; nuggets one a site are those of all points, (n,) on the host

    Raises ValueError and LinAlgError as `h2gpu.solvers.vecchia`, on all ranks.
    Source: Vecchia (1988); Schäfer, Katzfuss & Owhadi (2021), theorem 2.1.

    >>> import numpy as np
    >>> from h2gpu import covariance, distributed
    >>> comm = distributed.communicator()  # one process here; more under mpiexec
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), covariance.Exponential(length_scale=0.3)
    >>> cov = cov + covariance.Nugget(0.1)
    >>> A = distributed.covariance_matrix(sites, cov, rtol=1e-6, comm=comm)
    >>> W = distributed.solvers.vecchia(A, sites, cov)
    >>> A.gather(W @ A.scatter(np.ones(600))).shape
    (600,)
    """
    comm = A.comm
    with comm.together("vecchia"):
        sites = Sites.of(all_points(comm, my_points), cov)
        if sites.shape != A.shape:
            raise ValueError(f"vecchia: expected the {A.shape[0]} points of the matrix, got {sites.shape[0]}")
        if not isinstance(neighbours, (int, np.integer)) or neighbours < 0:
            raise ValueError(f"neighbours: expected an integer ≥ 0, got {brief(neighbours)}; 30 is the usual choice")
        return factor_of(comm, A.rows.partition, sites, neighbours, nugget, random_state)


def factor_of(comm, partition, sites, neighbours, nugget, random_state):
    """The DistributedInverseFactor of Sites that all hosts have, rows by a Partition; nugget: a number, or (n,)."""
    n, m, x, xp = len(sites.points), min(int(neighbours), len(sites.points) - 1), sites.points, comm.xp
    with phase("order"):
        order, places = maximin_order(x, random_state, lambda x: _distances(comm, x))
        place = np.empty(n, np.int64)
        place[permutation_of(comm, partition)] = np.arange(n)
        place = place[order]  # in tree order, of each position of the order
        begin, own = partition.bounds[comm.rank], partition.sizes[comm.rank]
        positions = np.flatnonzero((place >= begin) & (place < begin + own))
        tail = positions[positions >= m]
        members = np.concatenate([nearest_earlier_of(tail, x[order], places, m), tail[:, None]], axis=1)
    data, indices, counts = _entries(xp, sites, nugget, order, positions[positions < m], members, m)
    pivots = data[np.cumsum(counts) - 1].astype(np.float64)
    log_determinant = -2 * float(comm.sum(np.array([np.log(pivots).sum()]), "log-determinant of W")[0])
    columns, halo = _halo(comm, partition.bounds, place[indices])
    W = scipy.sparse.csr_array((data, columns, np.append(0, np.cumsum(counts))), shape=(own, own + halo.size))
    W, Wt = (_on(xp, M.astype(sites.dtype)) for M in (W, W.T.tocsr()))
    return DistributedInverseFactor(comm, positions, W, Wt, halo.on(xp), log_determinant)


def _distances(comm, x):
    """`nearest_distances`, each rank those of a part."""
    return np.concatenate(comm.gather(nearest_distances(x, comm.rank, comm.size), "distances of the order"))


def _entries(xp, sites, nugget, order, head_positions, some, m):
    """Entries of the rows of W of the head, and of those with some members; their columns as positions, and entries a
    row; on the host."""
    x = xp.asarray(sites.points[order].astype(np.float64))
    nuggets = xp.asarray(check_nuggets(nugget, len(x))[order] + sites.cov.nugget)
    head, _ = head_of(sites.cov.pair_function, x[:m], nuggets[:m])
    first = head_positions * (head_positions + 1) // 2
    inner = np.concatenate([np.arange(f, f + p + 1) for f, p in zip(first, head_positions)] or [np.zeros(0, int)])
    rows, _ = rows_of(sites.cov.pair_function, x, nuggets, some)
    data = np.concatenate([to_host(head)[inner.astype(np.int64)], to_host(rows).ravel()])
    heads = [np.arange(p + 1) for p in head_positions]
    indices = np.concatenate([*heads, some.ravel()]).astype(np.int64)
    return data, indices, np.append(head_positions + 1, np.full(len(some), m + 1))


def _halo(comm, bounds, places):
    """Local columns of places in tree order, own sites first, and the Halo of the others."""
    begin, end = bounds[comm.rank], bounds[comm.rank + 1]
    foreign = (places < begin) | (places >= end)
    ghosts, numbers = np.unique(places[foreign], return_inverse=True)
    columns = places - begin
    columns[foreign] = end - begin + numbers
    owners = np.searchsorted(bounds, ghosts, side="right") - 1
    receives = {int(q): np.flatnonzero(owners == q) for q in np.unique(owners)}
    sends = swapped(comm, {q: (ghosts[i],) for q, i in receives.items()}, (ghosts[:0],), NAME)
    return columns, Halo(len(ghosts), {q: wanted - begin for q, (wanted,) in sends.items()}, receives, None)


def _block(x):
    """x as (own, count), and the shape it had."""
    return x.reshape(len(x), 1 if x.ndim == 1 else x.shape[1]), x.shape


def _on(xp, W):
    """A sparse matrix in the memory of the array module xp."""
    if xp is np:
        return W
    import cupyx.scipy.sparse

    parts = (xp.asarray(part) for part in (W.data, W.indices.astype(np.int32), W.indptr.astype(np.int32)))
    return cupyx.scipy.sparse.csr_matrix(tuple(parts), shape=W.shape)
