"""Points and one accuracy → compressed covariance matrix.

Builds with the parameters of a plan, streams the couplings through the compression so that the uncompressed ones never
exist at once, and checks the result against the exact covariance on sampled rows.
"""

import logging
import math

import numpy as np

from h2gpu import batched
from h2gpu.arrays import any_array, moved, to_host
from h2gpu.batched import MatrixBatch
from h2gpu.batched.device.threads import in_cache
from h2gpu.clustering import BlockTree
from h2gpu.covariance import pairwise
from h2gpu.covariance.base import Covariance
from h2gpu.covariance.sites import Sites
from h2gpu.h2matrix.compression.compress import compress
from h2gpu.h2matrix.construction import deferred
from h2gpu.h2matrix.matrix import H2Matrix
from h2gpu.h2matrix.nearfield import check_nearfield
from h2gpu.h2matrix.planning.planner import Planner
from h2gpu.h2matrix.rows import meeting, together
from h2gpu.memory import require
from h2gpu.progress import phase
from h2gpu.texts import brief
from h2gpu.typing import ArrayLike, Operator, Seed, Storage

logger = logging.getLogger("h2gpu")

ROWS_CHECKED, ENTRIES_CHECKED = 64, 1 << 17  # of the exact matrix: rows at least, entries of more rows
ROWS_OF_A_PIECE = 1 << 11  # of the vectors that are compared
MORE_POINTS = 1, 2  # a direction, where the check finds more error than rtol, and where it does so again
LESS_MEMORY = "; give fewer points, a larger rtol, or float32 coordinates"


@any_array
def covariance_matrix(
    points: ArrayLike,
    cov: Covariance,
    rtol: float = 1e-6,
    *,
    col_points: ArrayLike | None = None,
    storage: Storage = "auto",
    nearfield: str = "stored",
) -> H2Matrix:
    """The compressed covariance matrix with ‖A − exact‖_F ≤ rtol ‖exact‖_F, checked on random rows.

    points       (n, dim) NumPy array (work on the CPU) or CuPy array (on the GPU)
    cov          an `h2gpu.covariance` value
    rtol         relative accuracy in the Frobenius norm; everything else is chosen, as `h2gpu.plan` would, and logged
                 (logger "h2gpu", level info)
    col_points   (m, dim) points of the columns, for a rectangular matrix
    storage      "auto": parts in float32 where the accuracy allows it; "full": all in the precision of the points
    nearfield    "stored", or "computed" in every product from the points: slower, and cannot be saved

    Raises ValueError for bad arguments, and when the accuracy cannot be reached; MemoryError before the work when its
    estimated peak is more than is free. Source: Boukaram et al. (2018), section 8; Börm (2010), chapters 4 and 6.

    >>> import numpy as np
    >>> import h2gpu
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), h2gpu.covariance.Exponential(length_scale=0.3)
    >>> C = h2gpu.covariance_matrix(sites, cov, rtol=1e-6)
    >>> C.shape, bool(np.linalg.norm(C.to_dense() - cov(sites)) <= 1e-6 * np.linalg.norm(cov(sites)))
    ((600, 600), True)
    """
    kept = {"storage": storage, "nearfield": nearfield}
    sites = Sites.of(points, cov, col_points)
    attempts, blocks, error = plans(sites, rtol, **kept), None, None
    for attempt in range(1 + len(MORE_POINTS)):
        chosen = attempts.send(error)
        logger.info("covariance_matrix: %s", chosen)
        require(chosen.bytes_peak, sites.xp, "covariance_matrix", LESS_MEMORY)
        B = compress(  # nobody holds what it is given, as a call with **kept would
            uncompressed(sites, chosen, blocks=blocks, **kept), chosen.rtol, storage=storage, nearfield=nearfield
        )
        error = error_on_rows(B, sites, rows_checked(*sites.shape), attempt)
        logger.info("covariance_matrix: error %.3g on sampled rows, %r", error, B)
        if error <= rtol:
            return B
        blocks = _blocks_of(B)
        del B  # before there is another
    raise ValueError(
        f"rtol: {rtol:g} was not reached: the error on {rows_checked(*sites.shape)} sampled rows is still {error:.2g} "
        f"with interpolation of order {chosen.order}; ask for less accuracy"
    )


def rows_checked(rows, columns):
    """All of a small matrix: its errors may lie in a few rows."""
    return min(rows, max(ROWS_CHECKED, ENTRIES_CHECKED // max(1, columns)))


def plans(sites, rtol, *, order=None, **fixed):
    """The plan, then those to try where the checked error misses rtol: with more interpolation points a direction.

    order, fixed   parameters that `plan` is to keep, storage and nearfield

    The plans keep their trees, for `assemble` at the same Sites. Who sends the error that was found gets a plan for it.
    """
    planner = Planner(sites, rtol, **fixed)
    chosen = planner.plan(order)
    error = yield chosen
    for more in MORE_POINTS:
        chosen = planner.after(chosen, more, error)
        error = yield chosen


def assemble(sites, plan, *, method="weighted", svd="auto", storage="auto", nearfield="stored"):
    """The matrix of a plan before (couplings evaluated where used) and after compression: two H2Matrix, A and B."""
    A = uncompressed(sites, plan, storage=storage, nearfield=nearfield)
    return A, compress(A, plan.rtol, method=method, svd=svd, storage=storage, nearfield=nearfield)


def uncompressed(sites, plan, *, storage="auto", nearfield="stored", blocks=None):
    """The matrix of a plan, its couplings evaluated where they are used: for `compress` to consume.

    blocks   the BlockTree where there is one already, of the plan's leaf size and admissibility

    A plan with trees must be one of these sites. The nearfield is evaluated too where it will be rounded, so that it
    never exists in float64.
    """
    check_nearfield(nearfield)
    parameters = {name: getattr(plan, name) for name in ("leaf_size", "eta", "split", "trees")}
    built = "stored" if storage == "full" and nearfield == "stored" else "computed"
    return deferred(sites, order=plan.orders, nearfield=built, blocks=blocks, **parameters)


def _blocks_of(B):
    """The BlockTree of a matrix."""
    far, near = (np.stack([part.rows, part.columns]) for part in (B.couplings, B.nearfield))
    return BlockTree(B.row_basis.tree, B.col_basis.tree, far, near)


@any_array
def sampled_error(
    B: Operator,
    points: ArrayLike,
    cov: Covariance,
    rows: int = 256,
    random_state: Seed = None,
    *,
    col_points: ArrayLike | None = None,
) -> float:
    """‖B − exact‖_F / ‖exact‖_F over random rows of the exact covariance.

    B              anything with shape and rmatmat (Bᵀ X), of the covariance at `points` (and `col_points`)
    points, cov    as for `build`
    rows           how many rows are drawn, without replacement
    random_state   seed

    Raises ValueError for a shape, a covariance or a number of rows that does not fit.
    Source: Cochran (1977), chapter 6: the ratio of two sums, estimated from a sample.

    >>> import numpy as np
    >>> import h2gpu
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), h2gpu.covariance.Exponential(length_scale=0.3)
    >>> C = h2gpu.covariance_matrix(sites, cov, rtol=1e-5)
    >>> h2gpu.sampled_error(C, sites, cov, rows=100, random_state=0) <= 1e-5
    True
    """
    sites = Sites.of(points, cov, col_points)
    if B.shape != sites.shape:
        raise ValueError(f"sampled_error: expected a matrix of shape {sites.shape}, got {B.shape}")
    if not isinstance(rows, (int, np.integer)) or rows < 1:
        raise ValueError(f"rows: expected a positive integer, got {brief(rows)}")
    return error_on_rows(B, sites, rows, random_state)


def error_on_rows(B, sites, rows, random_state=None):
    """The same at Sites of B's shape. A GPU is waited for once, when all rows are enqueued."""
    xp, n = sites.xp, len(sites.points)
    drawn = np.random.default_rng(random_state).choice(n, min(rows, n), replace=False)  # in no time, whatever n is
    passes, Y = np.array_split(drawn, -(-len(drawn) // together(max(sites.shape), xp))), _pieces(sites.columns)
    norms = []  # of errors and of exact rows
    with phase("check", len(drawn)) as advance:
        for i in passes:
            C = meeting(B, i) if isinstance(B, H2Matrix) else B
            norms += _norms_of_rows(C, sites, i, Y)
            advance(len(i))
        errors, exact = zip(*norms)
        both = to_host(xp.concatenate(errors + exact)).astype(np.float64)
        error, norm = (both.reshape(2, -1) ** 2).sum(axis=1).tolist()
    return math.sqrt(error / norm) if norm else math.sqrt(error)


def _norms_of_rows(B, sites, index, Y):
    """Pairs of ‖error‖_F in some rows and ‖exact rows‖_F, of some pieces Y of the column sites each, (pieces,)."""
    kind, unit = np.result_type(B.dtype, sites.dtype), _unit_vectors(sites.xp, B.shape[0], index, B.dtype)
    operands = [_pieces(B.rmatmat(unit).astype(kind, copy=False)), Y]
    if sites.symmetric and sites.cov.nugget:
        operands.append(_pieces(unit.astype(kind, copy=False)))

    def compared(found, Y, own=None):
        exact = _exact_rows(sites, index, Y, kind)
        if own is not None:
            exact = batched.axpy(own, exact, sites.cov.nugget)
        return batched.frobenius_norms(batched.axpy(exact, found, -1)), batched.frobenius_norms(exact)

    return in_cache(compared, *operands)


def _unit_vectors(xp, n, index, dtype):
    """Columns e_i, (n, len(index))."""
    unit = xp.zeros((n, len(index)), dtype)
    own = MatrixBatch.from_stack(moved(np.eye(len(index), dtype=dtype)[:, None], xp))
    batched.gather(own, np.arange(len(index)), out=MatrixBatch.from_rows(unit, index, np.ones(len(index))))
    return unit


def _exact_rows(sites, index, Y, dtype):
    """Rows of the exact covariance without its nugget, as columns: of each of the pieces Y of the column sites."""
    single = np.ones(len(index))
    x = batched.gather(MatrixBatch.from_rows(sites.points, index, single), np.arange(len(index))).buffer
    X = MatrixBatch.from_rows(x.reshape(-1, sites.dim), np.zeros(len(Y)), np.full(len(Y), len(index)))
    return batched.transpose(pairwise(sites.cov.pair_function, X, Y)).astype(dtype)


def _pieces(A):
    """Some rows of A after one another, a MatrixBatch: batched routines share out matrices."""
    starts = np.arange(0, len(A), ROWS_OF_A_PIECE)
    return MatrixBatch.from_rows(A, starts, np.minimum(len(A) - starts, ROWS_OF_A_PIECE))
