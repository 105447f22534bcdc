"""Points by ranks and one accuracy → compressed covariance matrix by ranks.

    shares of points → all on every host → plan (rank 0) → trees (the same on all) → own rows built, compressed, checked

As `h2matrix.assembly`; the tree is the serial one to the last bit.
"""

import logging
import math
from dataclasses import replace

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.clustering import Admissibility, BlockTree
from h2gpu.covariance.base import Covariance
from h2gpu.covariance.sites import Sites
from h2gpu.distributed.communicators.communicator import Communicator
from h2gpu.distributed.compression import built_and_compressed
from h2gpu.distributed.matrix import DistributedH2Matrix
from h2gpu.distributed.sorting import cluster_tree
from h2gpu.h2matrix.accuracy import Accuracy
from h2gpu.h2matrix.assembly import ROWS_CHECKED, plans
from h2gpu.h2matrix.compression.precision import check_storage
from h2gpu.h2matrix.planning.planner import LEAF_SIZES
from h2gpu.h2matrix.rows import ROWS_TOGETHER
from h2gpu.progress import phase
from h2gpu.typing import ArrayLike, Storage

logger = logging.getLogger("h2gpu")


def covariance_matrix(
    my_points: ArrayLike,
    cov: Covariance,
    rtol: float = 1e-6,
    *,
    comm: Communicator,
    my_col_points: ArrayLike | None = None,
    storage: Storage = "auto",
    once: bool = False,
) -> DistributedH2Matrix:
    """The compressed covariance matrix with ‖A − exact‖_F ≤ rtol ‖exact‖_F, checked on random rows, by ranks.

    my_points      (n_r, dim) this rank's share of the points, NumPy or CuPy; the shares follow one another by rank,
                   and may be unequal or empty
    cov, rtol      the same on all ranks, as for `h2gpu.covariance_matrix`
    comm           Communicator; the work is done where comm.xp says
    my_col_points  (m_r, dim) share of the points of the columns, for a rectangular matrix
    storage        as for `h2gpu.covariance_matrix`
    once           off-diagonal blocks of a symmetric matrix are kept by one of their two owners, not by both: less
                   memory where there are many, as in space, and one more exchange a product

    Raises on all ranks what one of them raises: ValueError for bad arguments, and when the accuracy cannot be reached.
    Source: Zampini et al. (2022), H2Opus, section 3.

    >>> import numpy as np
    >>> from h2gpu import covariance, distributed
    >>> comm = distributed.communicator()  # one process here; more under mpiexec
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), covariance.Exponential(length_scale=0.3)
    >>> A = distributed.covariance_matrix(sites, cov, rtol=1e-6, comm=comm)
    >>> y = A @ A.scatter(np.ones(600))
    >>> bool(np.allclose(A.gather(y), cov(sites) @ np.ones(600), rtol=1e-4))
    True
    """
    with comm.together("covariance_matrix"):
        Accuracy.of(rtol, np.float64)
        check_storage(storage)
        sites = Sites.of(
            all_points(comm, my_points), cov, None if my_col_points is None else all_points(comm, my_col_points)
        )
        return of_sites(comm, sites, rtol, storage, once)


def of_sites(comm, sites, rtol, storage="auto", once=False):
    """The same of Sites that all hosts have."""
    planned = plans(sites, rtol, storage=storage) if comm.rank == 0 else None
    for chosen in agreed(comm, planned):
        B, error = of_plan(comm, sites, chosen, storage=storage, once=once)
        if error <= rtol:
            return B
    raise ValueError(f"rtol: {rtol:g} was not reached: the error on sampled rows is {error:.2g}; ask for less")


def of_plan(comm, sites, plan, *, storage="auto", once=False, finest=LEAF_SIZES[0], rows=ROWS_CHECKED):
    """(DistributedH2Matrix, its error on random rows) of a plan of Sites that all hosts have.

    finest   leaf size with which the planner grew its tree, for the same order of points
    """
    with phase("cluster"):
        sides = [sites.points] if sites.symmetric else [sites.points, sites.col_points]
        trees = [cluster_tree(comm, x, min(finest, plan.leaf_size), plan.split).cut(plan.leaf_size) for x in sides]
        blocks = BlockTree.build(trees[0], trees[-1], Admissibility(plan.eta))
    B = built_and_compressed(comm, blocks, sites, plan.orders, plan.rtol, storage, once)
    error = error_on_rows(B, sites, rows, 0)
    if comm.rank == 0:
        logger.info("distributed: %s, error %.3g on %d sampled rows, %r", plan, error, rows, B)
    return B, error


def error_on_rows(B, sites, rows, random_state=None):
    """‖B − exact‖_F / ‖exact‖_F over random rows, each rank at its own columns; a call of all ranks."""
    comm, xp, cov = B.comm, B.xp, sites.cov
    row_points, col_points = (side.partition.points(comm.rank) for side in (B.rows, B.cols))
    own, y = np.full(sites.shape[0], -1), xp.asarray(sites.columns[col_points])
    own[row_points] = np.arange(len(row_points))
    drawn, sums = np.random.default_rng(random_state).permutation(sites.shape[0])[:rows], np.zeros(2)
    with phase("check", len(drawn)) as advance:
        for i in np.array_split(drawn, -(-len(drawn) // ROWS_TOGETHER)):
            here = np.flatnonzero(own[i] >= 0)
            unit = xp.zeros((len(row_points), len(i)), B.dtype)
            unit[xp.asarray(own[i[here]]), xp.asarray(here)] = 1
            exact = cov.values(y[:, None], xp.asarray(sites.points[i])[None])
            if sites.symmetric and cov.nugget:
                exact += unit * exact.dtype.type(cov.nugget)
            sums[0] += float(xp.sum((B.rmatmat(unit) - exact).astype(np.float64) ** 2))
            sums[1] += float(xp.sum(exact.astype(np.float64) ** 2))
            advance(len(i))
    error, norm = comm.sum(sums, "error on sampled rows")
    return math.sqrt(error / norm) if norm else math.sqrt(error)


def agreed(comm, planned):
    """The plans of rank 0 without their trees, on all ranks; planned: what yields them there, None on others."""
    while True:
        chosen = None if planned is None else next(planned, None)
        chosen = comm.gather(None if chosen is None else replace(chosen, trees=()), "plan")[0]
        if chosen is None:
            return
        yield chosen


def all_points(comm, share):
    """The points of all ranks, one share after the other, on the host."""
    share = to_host(share)
    shares = comm.gather((share.shape[1:], share.dtype.name), "points")
    shapes = sorted({str(kind) for kind in shares})
    if share.ndim != 2 or len(shapes) > 1:
        raise ValueError(f"my_points: expected shares (points, dim) of one dimension and type, got {shapes}")
    return np.concatenate(comm.gather(share, "points"))
