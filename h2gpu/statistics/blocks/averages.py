"""Kriging of block means: predictions and the variances of their errors, exact for the discretized blocks.

    Ẑ(v) = q̄ᵀ γ + k̄ᵀ w,     σ²(v) = C̄(v, v) − k̄ᵀ K⁻¹ k̄ + ūᵀ (Qᵀ K⁻¹ Q)⁻¹ ū,     ū = q̄ − Qᵀ K⁻¹ k̄

Bars are weighted sums over the places of a block: k̄ = Σ a_i k(x_i), C̄(u, v) = ΣΣ a_i b_j C(x_i, y_j).
Reference: Chilès & Delfiner (2012), Geostatistics, section 3.5.
"""

import numpy as np
import scipy.sparse

from h2gpu.arrays import array_module, to_host
from h2gpu.progress import phase
from h2gpu.statistics.cross import CrossCovariance
from h2gpu.statistics.variances import EXACT

PAIRS = 1 << 22  # of places and sites evaluated at a time
MOST_BLOCKS = 5000  # of a joint covariance


def block_predictions(equations, blocks, return_std, return_cov):
    """Ẑ (blocks,) and, where asked for, √σ² (blocks,) or the covariance (blocks, blocks) of the errors, else None.

    Raises ValueError for both.
    """
    if return_std and return_cov:
        raise ValueError("predict_blocks: expected one of return_std and return_cov, got both")
    mean = block_means(equations, blocks)
    if return_cov:
        return mean, block_covariance(equations, blocks)
    return mean, array_module(mean).sqrt(block_variances(equations, blocks)) if return_std else None


def block_means(equations, blocks):
    """Ẑ of every block, (blocks,)."""
    w = equations.w
    P = _cross(equations, blocks).products(w, np.full(1, equations.rtol * equations.spread))
    return blocks.means(equations._q(blocks.points) @ equations.gamma + P)[:, 0]


def block_variances(equations, blocks):
    """σ² of every block, (blocks,): exact, by a solve a block."""
    xp, regression, sites = array_module(equations.sites), equations.regression, _places(equations, blocks)
    located = CrossCovariance(sites, equations.sites, equations.cov).located
    variances = _within(blocks, located.cov, located.points) + _nugget(equations, blocks, sites, diagonal=True)
    u, inverse = blocks.means(equations._q(blocks.points)), xp.asarray(np.linalg.inv(regression.information))
    with phase("block variances", len(blocks)) as advance:
        for first in range(0, len(blocks), EXACT):
            some = slice(first, min(first + EXACT, len(blocks)))
            columns = _columns(equations, blocks.some(some.start, some.stop))
            variances[some] -= equations.system.explained(columns)
            u[some] -= columns.T @ regression.solved
            advance(some.stop - some.start)
    return xp.maximum(variances, 0) + xp.einsum("ij,ij->i", u, u @ inverse)


def block_covariance(equations, blocks):
    """The covariance matrix (blocks, blocks) of the errors. Raises ValueError for more than MOST_BLOCKS."""
    xp, regression = array_module(equations.sites), equations.regression
    if len(blocks) > MOST_BLOCKS:
        raise ValueError(
            f"return_cov: expected at most {MOST_BLOCKS} block means, as it is a dense matrix, got {len(blocks)}"
        )
    sites = _places(equations, blocks)
    columns = xp.concatenate(
        [_columns(equations, blocks.some(b, min(b + EXACT, len(blocks)))) for b in range(0, len(blocks), EXACT)], axis=1
    )
    u = blocks.means(equations._q(blocks.points)) - columns.T @ regression.solved
    joint = _between(blocks, equations, sites) + _nugget(equations, blocks, sites)
    joint -= columns.T @ equations.system.solve(columns)
    joint += u @ xp.asarray(np.linalg.inv(regression.information)) @ u.T
    return 0.5 * (joint + joint.T)


def _places(equations, blocks):
    return equations.trend.sites(blocks.points)


def _cross(equations, blocks):
    return CrossCovariance(_places(equations, blocks), equations.sites, equations.cov, not blocks.areal)


def _columns(equations, blocks):
    """k̄, (n, blocks)."""
    xp, n = array_module(equations.sites), len(equations.sites)
    cross, step = _cross(equations, blocks), max(1, PAIRS // n)
    owner, total = np.repeat(np.arange(len(blocks)), np.diff(blocks.start)), len(blocks.weights)
    k = xp.zeros((len(blocks), n))
    for first in range(0, total, step):
        some = slice(first, min(first + step, total))
        own, begin = np.unique(owner[some], return_index=True)
        weighted = cross.columns(some).T * xp.asarray(blocks.weights[some])[:, None]
        k[xp.asarray(own)] += xp.add.reduceat(weighted, xp.asarray(begin), axis=0)
    return k.T


def _within(blocks, cov, located):
    """C̄(v, v) of every block without nugget, (blocks,); cov in the coordinates of located (total, dim)."""
    xp, sizes = array_module(located), np.diff(blocks.start)
    found, a = xp.empty(len(blocks)), xp.asarray(blocks.weights)
    for size in np.unique(sizes):
        same = np.flatnonzero(sizes == size)
        step = max(1, PAIRS // int(size) ** 2)
        for first in range(0, len(same), step):
            own = same[first : first + step]
            rows = xp.asarray(blocks.start[own][:, None] + np.arange(size))
            x, share = located[rows], a[rows]
            values = cov.values(x[:, :, None], x[:, None])
            found[xp.asarray(own)] = xp.einsum("bi,bij,bj->b", share, values, share)
    return found


def _between(blocks, equations, sites):
    """C̄(u, v) of all pairs of blocks without nugget, (blocks, blocks)."""
    xp, count, total = array_module(sites), len(blocks), len(sites)
    located = CrossCovariance(sites, equations.sites, equations.cov).located
    x, found, first = located.points, xp.empty((count, count)), 0
    while first < count:  # as many blocks at a time as have about PAIRS / total places
        most = int(blocks.start[first]) + max(1, PAIRS // total)
        stop = max(first + 1, int(np.searchsorted(blocks.start, most, side="right")) - 1)
        own, rows = blocks.some(first, stop), slice(blocks.start[first], blocks.start[stop])
        found[first:stop] = blocks.means(own.means(located.cov.values(x[rows, None], x[None])).T).T
        first = stop
    return found


def _nugget(equations, blocks, sites, diagonal=False):
    """nugget Σ a_i b_j over pairs of places that are the same, (blocks, blocks) or its diagonal; 0 for areas."""
    nugget = equations.cov.nugget
    if blocks.areal or not nugget:
        return 0.0
    _, place = np.unique(to_host(sites), axis=0, return_inverse=True)
    owner = np.repeat(np.arange(len(blocks)), np.diff(blocks.start))
    A = scipy.sparse.csr_matrix((blocks.weights, (owner, place.ravel())))
    shared = A.multiply(A).sum(axis=1).A1 if diagonal else (A @ A.T).toarray()
    return nugget * array_module(sites).asarray(shared)
