"""Points by ranks and one accuracy → compressed covariance matrix by ranks.

    shares of points → sorted by ranks → plan (rank 0) → own subtrees, own blocks → own rows built, compressed, checked

As `h2matrix.assembly`; the tree is the serial one to the last bit.
"""

import logging
import math
from dataclasses import replace

import numpy as np

from h2gpu.arrays import to_host
from h2gpu.clustering import Admissibility
from h2gpu.covariance.base import Covariance
from h2gpu.covariance.sites import Sites
from h2gpu.distributed.communicators.communicator import Communicator
from h2gpu.distributed.compression import built_and_compressed
from h2gpu.distributed.matrix import DistributedH2Matrix
from h2gpu.distributed.planning import planned
from h2gpu.distributed.trees.shares import shared
from h2gpu.distributed.trees.sorting import sorted_points
from h2gpu.distributed.trees.traversal import essential_blocks
from h2gpu.h2matrix.accuracy import Accuracy
from h2gpu.h2matrix.assembly import rows_checked
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
        return of_shares(comm, sites_of_shares(comm, my_points, cov, my_col_points), rtol, storage, once)


def of_sites(comm, sites, rtol, storage="auto", once=False):
    """The same of Sites that all hosts have."""
    x, y = (side if side is None else own_part(comm, side) for side in (sites.points, sites.col_points))
    return of_shares(comm, replace(sites, points=x, col_points=y), rtol, storage, once)


def of_shares(comm, sites, rtol, storage="auto", once=False):
    """The same of Sites of which each host has a share."""
    points = sorted_sides(comm, sites, LEAF_SIZES[0])
    for chosen in planned(comm, sites, points, rtol, finest=LEAF_SIZES[0], storage=storage):
        B, error = of_plan(comm, sites, points, chosen, storage=storage, once=once)
        if error <= rtol:
            return B
    raise ValueError(f"rtol: {rtol:g} was not reached: the error on sampled rows is {error:.2g}; ask for less")


def sorted_sides(comm, sites, leaf_size, split="median"):
    """[Sorted of the rows, of the columns] of Sites of which each host has a share, one of a symmetric matrix."""
    with phase("cluster"):
        sides = [sites.points] if sites.symmetric else [sites.points, sites.col_points]
        return [sorted_points(comm, x, leaf_size, split) for x in sides]


def of_plan(comm, sites, points, plan, *, storage="auto", once=False, svd="auto", method="weighted", rows=None):
    """(DistributedH2Matrix, its error on random rows) of a plan of Sites of which each host has a share.

    points   `sorted_sides`, down to leaves of the planner's tree
    rows     how many; None: as the serial one
    """
    with phase("cluster"):
        blocks, points = _blocks(comm, points, plan.leaf_size, Admissibility(plan.eta, sites.cov.kinks))
    B = built_and_compressed(comm, blocks, points, sites.cov, plan.orders, plan.rtol, storage, once, svd, method)
    rows = rows or rows_checked(*B.shape)
    error = error_on_rows(B, points, sites.cov, rows, 0)
    if comm.rank == 0:
        logger.info("distributed: %s, error %.3g on %d sampled rows, %r", plan, error, rows, B)
    return B, error


def blocks_of(comm, sides, leaf_size, admissible, split="median", finest=None):
    """(a rank's BlockTree on EssentialTrees, [its own points in tree order, of each side]); a call of all ranks.

    sides    [share of the points of the rows (n_r, dim), that of the columns], one of a symmetric matrix, on the host
    finest   leaf size down to which points are sorted, where that is less
    """
    finest = leaf_size if finest is None else min(finest, leaf_size)
    return _blocks(comm, [sorted_points(comm, x, finest, split) for x in sides], leaf_size, admissible)


def _blocks(comm, points, leaf_size, admissible):
    """The same of Sorted points."""
    shares = [shared(comm, side, leaf_size) for side in points]
    return essential_blocks(comm, shares, admissible), [share.x for share in shares]


def error_on_rows(B, points, cov, rows, random_state=None):
    """‖B − exact‖_F / ‖exact‖_F over random rows, each rank at its own columns; a call of all ranks.

    points   [own points of the rows in tree order, of the columns], one of a symmetric matrix
    """
    comm, xp, y = B.comm, B.xp, B.xp.asarray(points[-1])
    numbers, sums = B.rows.partition.points(comm.rank), np.zeros(2)
    drawn = np.random.default_rng(random_state).choice(B.shape[0], min(rows, B.shape[0]), replace=False)
    order = np.argsort(numbers)
    with phase("check", len(drawn)) as advance:
        for i in np.array_split(drawn, -(-len(drawn) // ROWS_TOGETHER[xp.__name__])):
            place = order.take(np.searchsorted(numbers, i, sorter=order), mode="clip") if len(order) else i
            here = np.flatnonzero(numbers[place] == i) if len(order) else i[:0]
            unit = xp.zeros((len(numbers), len(i)), B.dtype)
            unit[xp.asarray(place[here]), xp.asarray(here)] = 1
            x = np.empty((len(i), points[0].shape[1]), points[0].dtype)
            for some, found in comm.gather((here, points[0][place[here]]), "sampled rows"):
                x[some] = found
            exact = cov.values(y[:, None], xp.asarray(x)[None])
            if B.symmetric and cov.nugget:
                exact += unit * exact.dtype.type(cov.nugget)
            sums[0] += float(xp.sum((B.rmatmat(unit) - exact).astype(np.float64) ** 2))
            sums[1] += float(xp.sum(exact.astype(np.float64) ** 2))
            advance(len(i))
    error, norm = comm.sum(sums, "error on sampled rows")
    return math.sqrt(error / norm) if norm else math.sqrt(error)


def sites_of_shares(comm, my_points, cov, my_col_points=None):
    """Sites of a rank's share of the points, perhaps none; a call of all ranks."""
    sides = [_share(comm, share) for share in (my_points, my_col_points) if share is not None]
    sites = Sites.of(sides[0][0], cov, None if my_col_points is None else sides[1][0])
    parts = [None if x is None else x[:n] for x, (_, n) in zip((sites.points, sites.col_points), [*sides, (None, 0)])]
    return replace(sites, points=parts[0], col_points=parts[1])


def _share(comm, share):
    """(A share of points on the host, how many): instead of none the first point of another rank, to be checked."""
    share = to_host(share)
    shares = comm.gather((share.shape[1:], share.dtype.name), "points")
    shapes = sorted({str(kind) for kind in shares})
    if share.ndim != 2 or len(shapes) > 1:
        raise ValueError(f"my_points: expected shares (points, dim) of one dimension and type, got {shapes}")
    firsts = [first for first in comm.gather(share[:1], "a point") if len(first)]
    return share if len(share) or not firsts else firsts[0], len(share)


def own_part(comm, x):
    """A rank's part of what all hosts have."""
    return np.array_split(x, comm.size)[comm.rank]


def all_points(comm, share):
    """The points of all ranks, one share after the other, on the host."""
    share, count = _share(comm, share)
    return np.concatenate(comm.gather(share[:count], "points"))
