"""Block-Jacobi preconditioner: the inverse Cholesky factors of the diagonal blocks of the cluster tree's leaves.

    A⁻¹ ≈ Wᵀ W,     W = blockdiag(L_t⁻¹),   L_t L_tᵀ = A_tt   for every leaf t

The simple alternative to `vecchia`: clusters know nothing of each other, so that long-range correlation stays.
"""

import numpy as np

from h2gpu.arrays import any_array, array_module
from h2gpu.batched.core.offsets import offsets_of, ranges
from h2gpu.clustering import ClusterTree
from h2gpu.covariance.base import Covariance
from h2gpu.covariance.sites import Sites
from h2gpu.progress import phase
from h2gpu.solvers.inverse_factor import InverseFactor, sparse_rows
from h2gpu.solvers.operators import check_nugget
from h2gpu.solvers.small_factors import cholesky, covariances, together
from h2gpu.typing import ArrayLike


@any_array
def block_jacobi(points: ArrayLike, cov: Covariance, leaf_size: int = 64, *, nugget: float = 0.0) -> InverseFactor:
    """The factor of the block diagonal of the covariance matrix at (n, dim) points: an InverseFactor.

    points      NumPy array (work on the CPU) or CuPy array (on the GPU)
    cov         an `h2gpu.covariance` value, its nugget included
    leaf_size   sites of a block, at most
    nugget      added to the diagonal in addition

    Raises ValueError for bad arguments, LinAlgError where the covariance is not positive definite.
    Source: Saad (2003), section 12.2.

    >>> import numpy as np
    >>> from h2gpu import covariance, solvers
    >>> sites = np.random.default_rng(0).random((400, 2))
    >>> cov = covariance.Exponential(length_scale=0.3) + covariance.Nugget(0.1)
    >>> K = cov(sites)
    >>> P = solvers.block_jacobi(sites, cov, leaf_size=50)
    >>> bool(solvers.conjugate_gradients(K, np.ones(400), P).converged.all())
    True
    """
    sites = Sites.of(points, cov)
    x, cov = sites.points, sites.cov
    dtype, nugget, xp = x.dtype, check_nugget(nugget) + cov.nugget, array_module(x)
    tree = ClusterTree.build(x, leaf_size)
    x = x[tree.permutation_on(xp)].astype(np.float64)
    starts = np.sort(tree.start[tree.leaves])
    sizes = np.diff(np.append(starts, tree.n))
    firsts, regularized = offsets_of(sizes * (sizes + 1) // 2), 0
    data = xp.empty(int(firsts[-1]))
    with phase("block Jacobi", len(sizes)) as advance:
        for size in np.unique(sizes):
            lower, step = xp.asarray(np.flatnonzero(np.tri(size).ravel())), together(xp, size)
            alike = np.flatnonzero(sizes == size)
            for leaves in np.split(alike, range(step, len(alike), step)):
                points_of = starts[leaves][:, None] + np.arange(size)
                L, bad = cholesky(covariances(cov.pair_function, x[xp.asarray(points_of)], nugget))
                places = firsts[leaves][:, None] + np.arange(len(lower))
                data[xp.asarray(places)] = xp.linalg.inv(L).reshape(len(L), -1)[:, lower]
                regularized += int(bad.sum()) * int(size)
                advance(len(leaves))
    own_start = np.repeat(starts, sizes)
    counts = np.arange(tree.n) - own_start + 1
    W = sparse_rows(data.astype(dtype, copy=False), ranges(own_start, counts), offsets_of(counts), tree.n)
    return InverseFactor(tree.permutation, W, regularized)
