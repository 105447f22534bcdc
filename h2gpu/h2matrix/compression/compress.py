"""Compression of an H²-matrix to a promised accuracy.

    ‖A − Ã‖_F² ≤ Σ_rows discarded² + Σ_columns discarded² + rounded² ≤ (rtol ‖A‖_F)²

Orthogonalize (R), weigh (Z), truncate (new bases and T), project (S' = T S Tᵀ): each one sweep over the tree, each
level one batched call. Boukaram et al., section 8.2, for the truncation of the basis itself (`method="basis"`); Börm
(2010), chapter 6, for the weights. Last, what may be in float32 is rounded (`precision`).
"""

import numpy as np

from h2gpu.blocksparse import BlockSparse
from h2gpu.h2matrix.accuracy import Accuracy
from h2gpu.h2matrix.compression.decompositions import STRATEGIES, InDouble, TruncatedSVD
from h2gpu.h2matrix.compression.narrowed import with_narrowed
from h2gpu.h2matrix.compression.orthogonalization import triangular_factors
from h2gpu.h2matrix.compression.precision import check_storage, rounded
from h2gpu.h2matrix.compression.projection import project
from h2gpu.h2matrix.compression.truncation import RelativeToBasis, SharedBudget, truncate
from h2gpu.h2matrix.compression.weights import total_weights
from h2gpu.h2matrix.matrix import H2Matrix
from h2gpu.h2matrix.nearfield import EvaluatedNearfield, check_nearfield
from h2gpu.h2matrix.norms import farfield_square, nearfield_square, relative_error
from h2gpu.progress import phase
from h2gpu.texts import brief
from h2gpu.typing import Storage


def compress(
    A: H2Matrix,
    rtol: float = 1e-6,
    *,
    method: str = "weighted",
    svd: str = "auto",
    storage: Storage = "auto",
    nearfield: str | None = None,
) -> H2Matrix:
    """A smaller matrix Ã with ‖A − Ã‖_F ≤ rtol ‖A‖_F; A stays as it is, and shares what nearfield is not rounded.

    A          H2Matrix, with stored or evaluated couplings and nearfield
    rtol       relative accuracy in the Frobenius norm, from 8 ε of the precision to below 1
    method     "weighted": bases cut to what the farfield uses; "basis": the paper's, which truncates the basis itself
               and finds nothing to remove in well-conditioned ones such as Chebyshev's
    svd        "auto": SVDs of what a pivoted QR leaves, stopped far below what is discarded; "jacobi": full SVDs;
               "randomized": samples, as many as the accuracy takes; or a strategy of `decompositions`, such as
               RandomizedSVD(samples=64), or FixedSamples, which promises no rtol
    storage    "auto": parts of a float64 matrix in float32 where rounding takes at most a tenth of the squared
               accuracy; "full": nothing is rounded. Products are computed in float64 either way
    nearfield  "stored", or "computed" in every product as that of A; None: as that of A

    Raises ValueError for an rtol out of range or an unknown method, svd, storage or nearfield, TypeError for another A.
    Source: Börm (2010), chapter 6; Boukaram et al. (2018), section 8.2, for "basis".

    >>> import numpy as np
    >>> import h2gpu
    >>> sites, cov = np.random.default_rng(0).random((600, 2)), h2gpu.covariance.Exponential(length_scale=0.3)
    >>> A = h2gpu.build(sites, cov, leaf_size=32)
    >>> B = h2gpu.compress(A, rtol=1e-4)
    >>> A.relative_error(B) <= 1e-4, B.nbytes < A.nbytes
    (True, True)
    """
    if not isinstance(A, H2Matrix):
        raise TypeError(f"compress: expected an H2Matrix, as h2gpu.build makes, got {type(A).__name__}")
    accuracy = Accuracy.of(rtol, A.dtype)
    check_method(method)
    if not callable(svd) and svd not in STRATEGIES:
        raise ValueError(f'svd: expected "auto", "jacobi" or "randomized", got {brief(svd)}')
    check_storage(storage)
    computed = _stays_computed(A, nearfield)
    shared, decompose = accuracy.rounds(storage), svd if callable(svd) else STRATEGIES[svd]
    evaluated = isinstance(A.nearfield, EvaluatedNearfield) and not computed
    held = [with_narrowed(A.widened(), accuracy) if shared and evaluated else A.widened()]
    del A  # where nobody else holds it, its memory serves for what follows, as soon as it is no longer needed
    held = [METHODS[method](held, accuracy.unrounded if shared else accuracy, decompose)]
    with phase("store"):
        B = rounded(held.pop(), accuracy, but=("nearfield",) if computed else ()) if shared else held.pop()
        evaluated = evaluated and isinstance(B.nearfield, EvaluatedNearfield)  # rounding may have stored it
        return B.replace(nearfield=B.nearfield.stored()) if evaluated else B


def check_method(method):
    """ValueError for an unknown one."""
    if method not in METHODS:
        raise ValueError(f'method: expected "weighted" or "basis", got {brief(method)}')


def _stays_computed(A, nearfield):
    """Whether the nearfield is to be computed in products."""
    evaluated = isinstance(A.nearfield, EvaluatedNearfield)
    if nearfield is not None:
        check_nearfield(nearfield)
    if nearfield == "computed" and not evaluated:
        raise ValueError('nearfield: that of A is stored and cannot be computed; build A with nearfield="computed"')
    return evaluated and nearfield != "stored"


def _weighted(held, accuracy, decompose):
    """Truncate by total weights; the discarded squares of rows and columns share (rtol ‖A‖)² equally.

    held   A in a list, which is emptied: its bases are given up before its couplings are projected
    """
    A = held.pop()
    stored = isinstance(A.nearfield, BlockSparse)
    near = None if stored else nearfield_square(A.nearfield)  # enqueued; the host prepares what follows meanwhile
    R = triangular_factors(A.col_basis)
    Z = total_weights(A.row_basis, A.couplings, R)
    del R
    if stored:  # which takes a GPU less time than its host, who waits for the weights anyway
        near = nearfield_square(A.nearfield)
    if isinstance(decompose, TruncatedSVD):
        decompose = TruncatedSVD(consume=True)  # of products with the weights, that nobody else holds
    part, in_double = accuracy.discarded(A.row_basis.tree.levels)
    decompose = InDouble(decompose) if in_double else decompose
    budget = (near + farfield_square(A.row_basis, Z)) * (part / 2)  # on the device: nothing is waited for
    rows, row_change = truncate(A.row_basis, Z, budget, decompose, SharedBudget())
    del Z
    if A.symmetric:
        A = A.replace(row_basis=rows, col_basis=rows)
        return _projected(A, row_change, row_change)
    R = triangular_factors(A.row_basis)
    W = total_weights(A.col_basis, A.couplings, R, column_side=True)
    cols, col_change = truncate(A.col_basis, W, budget, decompose, SharedBudget())
    A = A.replace(row_basis=rows, col_basis=cols)
    return _projected(A, row_change, col_change)


def _basis(held, accuracy, decompose):
    """The paper's truncation; its tolerance speaks of the bases, so it is tightened until the matrix keeps rtol."""
    A, tolerance = held.pop(), accuracy.rtol
    while True:
        rule = RelativeToBasis(tolerance)
        rows, row_change = truncate(A.row_basis, None, 0.0, decompose, rule)
        cols, col_change = (rows, row_change) if A.symmetric else truncate(A.col_basis, None, 0.0, decompose, rule)
        B = _projected(A.replace(row_basis=rows, col_basis=cols), row_change, col_change)
        if relative_error(A, B) <= accuracy.rtol or tolerance == 0:
            return B
        tolerance = tightened(tolerance, A.dtype)


def tightened(tolerance, dtype):
    """The next tolerance of the basis where the matrix misses rtol: 0 where there is nothing left to remove."""
    return tolerance / TIGHTEN if tolerance > np.finfo(dtype).eps else 0


def _projected(A, row_change, col_change):
    """A, whose bases are new already, with its couplings in them."""
    return A.replace(couplings=project(A.couplings, A.row_basis, A.col_basis, row_change, col_change))


TIGHTEN = 8.0  # of the basis tolerance, each time the matrix misses rtol
METHODS = {"weighted": _weighted, "basis": _basis}
