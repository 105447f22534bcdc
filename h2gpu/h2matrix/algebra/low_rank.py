"""X Yᵀ as an H²-matrix on the trees and blocks of another one, for sums with it.

U_t = X_t at the leaves,   E_t = I,   S_ts = I in every farfield block,   D_ts = X_t Y_sᵀ
"""

import numpy as np

from h2gpu import batched
from h2gpu.arrays import array_module, as_array
from h2gpu.batched import MatrixBatch
from h2gpu.batched.copies.identities import with_identities
from h2gpu.blocksparse import BlockSparse
from h2gpu.h2matrix.accuracy import Accuracy
from h2gpu.h2matrix.algebra.sums import add, stored, unsymmetric
from h2gpu.h2matrix.basis import ClusterBasis
from h2gpu.h2matrix.matrix import H2Matrix
from h2gpu.typing import Array, Storage


def low_rank(A: H2Matrix, X: Array, Y: Array | None = None) -> H2Matrix:
    """X Yᵀ as an H²-matrix with the trees and blocks of A: `A + low_rank(A, X)` is an update of low rank.

    A   H2Matrix (n × m)
    X   (n, k) array where A is, in the caller's order of points: as in `A @ x`
    Y   (m, k); None: X, for which A must be symmetric, and the result is

    Raises ValueError for arrays of other shapes, elsewhere, or that are not finite real numbers.
    Source: Mathematics page, nested bases, with transfers I.

    >>> import numpy as np
    >>> import h2gpu
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), h2gpu.covariance.Exponential(length_scale=0.3)
    >>> A = h2gpu.build(sites, cov)
    >>> B = A + h2gpu.low_rank(A, np.ones((600, 1)))
    >>> bool(np.allclose(B @ np.ones(600), A @ np.ones(600) + 600))
    True
    """
    if Y is None and not A.symmetric:
        raise ValueError(f"low_rank: expected Y of shape ({A.shape[1]}, k) for a matrix that is not symmetric")
    X = _factor(A, X, 0, "X")
    like = A if Y is None or not A.symmetric else unsymmetric(A)
    Y = X if Y is None else _factor(A, Y, 1, "Y")
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"low_rank: expected X and Y of as many columns, got {X.shape[1]} and {Y.shape[1]}")
    S, symmetric = like.couplings, like.symmetric
    rows = _basis(like.row_basis.tree, np.concatenate([S.rows, S.columns]) if symmetric else S.rows, X)
    cols = rows if symmetric else _basis(like.col_basis.tree, S.columns, Y)
    k = np.full(len(S), X.shape[1])
    identities = with_identities(k, k, np.ones(len(S), bool), A.dtype, A.xp).packed()
    couplings = BlockSparse(identities, S.rows, S.columns, rows.starts[:-1], cols.starts[:-1], symmetric)
    near, (U, V) = like.nearfield, (_by_cluster(basis.tree, F) for basis, F in ((rows, X), (cols, Y)))
    return H2Matrix(rows, cols, couplings, stored(near, batched.gemm(U[near.rows], V[near.columns], transb=True)))


def low_rank_update(
    A: H2Matrix, U: Array, V: Array | None = None, rtol: float = 1e-6, *, storage: Storage = "auto"
) -> H2Matrix:
    """S = A + U Vᵀ, compressed to ‖result − S‖_F ≤ rtol ‖S‖_F.

    A         H2Matrix (n × m); a symmetric one stays so where V is None
    U, V      (n, k) and (m, k) arrays where A is, in the caller's order of points; V None: U
    storage   of the result: see `compress`

    The same as `add(A, low_rank(A, U, V), rtol=rtol)`; with beta=-1.0 there, A − U Uᵀ stays symmetric.
    Raises ValueError for arrays that `low_rank` refuses and an rtol that the precision cannot hold, TypeError where A
    is no H2Matrix. Source: Börm (2010), section 5.3, for the sum and its compression.

    >>> import numpy as np
    >>> import h2gpu
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), h2gpu.covariance.Exponential(length_scale=0.3)
    >>> C = h2gpu.covariance_matrix(sites, cov, rtol=1e-6)
    >>> trend = np.stack([np.ones(600), sites[:, 0]], axis=1)
    >>> B = h2gpu.low_rank_update(C, trend, rtol=1e-6)
    >>> (C + h2gpu.low_rank(C, trend)).relative_error(B) <= 1e-6
    True
    """
    if not isinstance(A, H2Matrix):
        raise TypeError(f"low_rank_update: expected an H2Matrix, got {type(A).__name__}")
    Accuracy.of(rtol, A.dtype)
    return add(A, low_rank(A, U, V), rtol=rtol, storage=storage)


def _factor(A, X, side, name):
    """X in the precision of A, once it is a finite (n, k) array where A is."""
    X = as_array(X)
    if array_module(X) is not A.xp or X.ndim != 2 or X.shape[0] != A.shape[side] or X.dtype.kind not in "fiub":
        kind = f"{A.xp.__name__} array of shape ({A.shape[side]}, k)"
        raise ValueError(f"low_rank: expected {name} a real {kind}, got {X.dtype} of shape {X.shape}")
    with np.errstate(over="ignore"):  # too large for float32: Inf, and told as such
        X = X.astype(A.dtype, copy=False)
    if not bool(A.xp.isfinite(X).all()):
        raise ValueError(f"low_rank: expected {name} of finite numbers, got NaN or Inf in {A.dtype}")
    return X


def _by_cluster(tree, X):
    """The rows of X of every cluster, sharing memory."""
    return MatrixBatch.from_rows(X[tree.permutation_on(array_module(X))], tree.start, tree.sizes)


def _basis(tree, coupled, X):
    """X_t of all clusters that have farfield blocks, or whose ancestors have."""
    reached = np.zeros(len(tree), bool)
    reached[coupled] = True
    for l in range(1, tree.levels):
        t = tree.span(l)
        reached[t] |= reached[tree.parent[t]]
    ranks = np.where(reached, X.shape[1], 0)
    above = np.where(tree.parent >= 0, ranks[tree.parent], 0)
    transfer = with_identities(ranks, above, (above > 0), X.dtype, array_module(X)).packed()
    leaf = batched.leading(_by_cluster(tree, X)[tree.leaves], tree.sizes[tree.leaves], ranks[tree.leaves])
    return ClusterBasis(tree, ranks, leaf, transfer)
