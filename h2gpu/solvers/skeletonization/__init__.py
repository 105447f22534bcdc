"""Strong recursive skeletonization: C ≈ G Gᵀ in linear time, from the points, for sites in the plane or on a sphere.

    cells → proxies → elimination, colour by colour and level by level → a dense root
    for differences by parameters: the same skeletons at a covariance near it, `similar`

eta is the tolerance relative to the smallest conditional variance of each cell. The error of log det goes as n eta².

Reference: Minden, Ho, Damle & Ying (2017), A recursive skeletonization factorization based on strong admissibility.
"""

import logging
from itertools import chain

import numpy as np

from h2gpu import batched
from h2gpu.arrays import any_array, array_module, to_host
from h2gpu.batched.copies import add_to_diagonals
from h2gpu.batched.device.threads import parallel
from h2gpu.covariance.base import PLANE, Covariance
from h2gpu.covariance.sites import Sites
from h2gpu.progress import phase
from h2gpu.solvers.operators import check_nuggets
from h2gpu.solvers.skeletonization.cells import Grid, Level, coarser
from h2gpu.solvers.skeletonization.changes import Changes
from h2gpu.solvers.skeletonization.elimination import FEWEST, Field, NotDefinite, eliminate
from h2gpu.solvers.skeletonization.factor import Skeletonization
from h2gpu.solvers.skeletonization.flat_changes import FlatChanges
from h2gpu.solvers.skeletonization.proxies import Proxies
from h2gpu.solvers.skeletonization.similar import alike
from h2gpu.solvers.skeletonization.triangles import Triangles
from h2gpu.texts import brief
from h2gpu.typing import ArrayLike

__all__ = ["Skeletonization", "skeletonize", "skeletonize_alike"]

logger = logging.getLogger("h2gpu")

RESTARTS = 3  # with a tenth of eta each
ROOT = 1500  # indices left for a dense factorization on the CPU
WIDER = 5  # times as many on the GPU
LARGEST = 20_000  # such indices
GROUP = {"numpy": 1 << 17, "cupy": 1 << 27}  # entries of the panels of cells that are worked on together
GROUPS = {"numpy": 16, "cupy": 1}  # such groups whose skeletons are found together


@any_array
def skeletonize(points: ArrayLike, cov: Covariance, eta: float = 0.01, *, nugget: float = 0.0) -> Skeletonization:
    """The factor of the covariance matrix at (n, dim) points, C ≈ G Gᵀ: a Skeletonization.

    points   NumPy array (work on the CPU) or CuPy array (on the GPU): one or two coordinates, or on a sphere
    cov      an `h2gpu.covariance` value, its nugget included
    eta      tolerance relative to conditional variances, from 0 to below 2
    nugget   added to the diagonal in addition: one number, or one a site, (n,) on the host

    Where the approximation is not positive definite it starts again with a tenth of eta, and a warning is logged.
    Raises ValueError for bad arguments and three coordinates, LinAlgError where no eta helps and where so much of the
    covariance is left for the root, as with ranges beyond which it is zero, that iterations are the better choice.
    Source: Minden, Ho, Damle & Ying (2017); Minden, Damle, Ho & Ying (2017) for likelihoods.

    >>> import numpy as np
    >>> from h2gpu import covariance, solvers
    >>> sites = np.random.default_rng(0).random((400, 2))
    >>> cov = covariance.Exponential(length_scale=0.3) + covariance.Nugget(0.1)
    >>> K = cov(sites)
    >>> G = solvers.skeletonize(sites, cov, eta=0.01)
    >>> bool(np.allclose(G.solve(K @ np.ones(400)), 1, atol=1e-3))
    True
    """
    if not (isinstance(eta, (int, float, np.floating)) and 0 < eta < 2):
        raise ValueError(
            f"eta: expected a number above 0 and below 2, got {brief(eta)}; from 2 on the error exceeds the smallest "
            "conditional variance: 0.01 is the usual choice"
        )
    sites = Sites.of(points, cov).interpolable()
    _check_dimension(sites)
    nugget = check_nuggets(nugget, sites.shape[0]) + sites.cov.nugget
    for attempt in range(RESTARTS + 1):
        try:
            return _factor(sites, nugget, float(eta))
        except NotDefinite:
            if attempt < RESTARTS:
                logger.warning("skeletonize: not positive definite with eta %.2g; again with %.2g", eta, eta / 10)
                eta = eta / 10
    raise np.linalg.LinAlgError(
        f"skeletonize: the covariance of {sites.shape[0]} sites is not positive definite, even with eta {eta:.2g}; add "
        "a nugget, or check that the covariance function is valid"
    )


def _check_dimension(sites):
    spherical = sites.cov.embedding not in (None, PLANE)
    if sites.dim > 2 and not spherical:
        raise ValueError(
            f"points: expected one or two coordinates, or sites on a sphere, got {sites.dim} coordinates; in three "
            "dimensions the skeletons grow with the surface of a cell, too large to factor: take vecchia with "
            "conjugate_gradients and log_determinant"
        )


def skeletonize_alike(G, points, cov, other, nugget=0.0):
    """The factor at a covariance near that of G, by G's choice of skeletons: a Skeletonization.

    cov, other   G's covariance and the one near it
    nugget       as for `skeletonize`, of the other

    For differences: no jump from one choice of skeletons to another. Raises LinAlgError where it is not positive
    definite.
    """
    here, there = Sites.of(points, cov), Sites.of(points, other)
    nugget = check_nuggets(nugget, here.shape[0]) + there.cov.nugget
    x = here.points.astype(np.float64)
    return _factored(x, _field(there, nugget, G.grid, G.eta), G)


def _factor(sites, nugget, eta):
    """One attempt; NotDefinite where it fails."""
    x = sites.points.astype(np.float64)
    return _factored(x, _field(sites, nugget, Grid.around(x), eta))


def _field(sites, nugget, grid, eta):
    """The Field of Sites, with the padded one."""
    xp, x = sites.xp, sites.points.astype(np.float64)
    radius = getattr(sites.cov.embedding, "radius", None)
    proxies = Proxies(grid.corner, to_host(x.max(axis=0)), len(x), radius)
    x, nugget = xp.concatenate([x, x[:1]]), xp.asarray(np.append(nugget, 0.0))
    return Field(x, sites.cov.pair_function, nugget, proxies, grid, eta)


def _factored(x, field, like=None):
    """The factor of a Field, in cells of the points x (n, dim); by the steps of another one where it is given."""
    xp, n, grid = array_module(x), field.n, field.grid
    depth, steps = grid.deepest(x), []
    level, changes = Level.of(grid.places(x, depth)), None
    with phase("skeletonize", n) as advance:
        while level.left > (ROOT if xp is np else WIDER * ROOT) and depth > 1:
            changes = (Changes if xp is np else FlatChanges).zeros(level) if changes is None else changes
            before = level.left
            if like is not None:
                steps += alike(field, level, changes, [step for step in like.steps if step.depth == depth])
            else:
                for cells in level.colours:
                    steps += _colour(field, level, changes, depth, cells[level.count[cells] >= FEWEST])
            advance(before - len(level.active))
            left = level.left
            logger.info("skeletonize: level %d, %d cells, %d of %d indices left", depth, len(level), left, before)
            if not left:  # far cells know nothing of each other
                break
            above, parent, start = coarser(level)
            changes, level, depth = changes.merged(level, above, parent, start), above, depth - 1
    top = level.active
    root = _root(field, level, changes, top)
    field.verdicts.check()
    return Skeletonization(n, field.eta, steps, top, root, grid)


def _colour(field, level, changes, depth, cells):
    """The Steps of one colour, in groups of cells of about one size."""
    xp = array_module(field.points)
    around = level.around(cells)
    work = (around.sum(axis=1) + 512) * level.count[cells]
    order = np.lexsort((around[:, : level.adjacent].sum(axis=1), level.count[cells]))
    cells, together = cells[order], np.maximum(1, GROUP[xp.__name__] // np.maximum(work[order], 1))
    groups, i = [], 0
    while i < len(cells):
        groups.append(slice(i, i + GROUPS[xp.__name__] * int(together[i])))
        i = groups[-1].stop

    def one(group):
        return eliminate(field, level, changes, depth, int(together[group][-1]), cells[group])

    return list(chain.from_iterable(parallel(one, groups) if changes.threaded else map(one, groups)))


def _root(field, level, changes, top):
    """The Cholesky factor of what is left."""
    xp = array_module(field.points)
    if not len(top):
        return xp.empty((0, 0))
    if len(top) > LARGEST:
        raise np.linalg.LinAlgError(
            f"skeletonize: expected at most {LARGEST} indices to be left for the root, got {len(top)} of {field.n}; "
            "take a larger eta, or vecchia with conjugate_gradients and log_determinant"
        )
    A = field.panel(top[None], len(top), xp.zeros((1, 0, field.points.shape[1])), xp.zeros((1, 0)))[0]
    add_to_diagonals(A[None], field.diagonal(top)[None])
    if changes is not None:
        changes.add_to_all(A, level)
    L, info = batched.cholesky(A[None], return_info=True)
    if int(info[0]):
        raise NotDefinite("the root")
    return Triangles.of(L, np.array([len(top)])) if changes is not None and changes.packed else L[0]
