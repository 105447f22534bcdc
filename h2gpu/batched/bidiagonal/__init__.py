"""Reduction to bidiagonal form, A = Q B Pt: the door.

    B = [d_0 e_0; d_1 e_1; …; d_{k−1}]   upper bidiagonal for m ≥ n,   its transpose, lower bidiagonal, for m < n

As LAPACK's GEBRD. Golub & Kahan (1965); Dong, Haidar, Tomov & Dongarra (2018).
"""

from typing import Literal, overload

from h2gpu.arrays import any_array
from h2gpu.batched.core.dispatch import twins_of
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.shapes import over_leading
from h2gpu.texts import brief
from h2gpu.typing import Matrices

twin = twins_of(__name__)


@overload
def bidiagonalize(A: Matrices, vectors: Literal["both"] = ...) -> tuple[Matrices, Matrices, Matrices, Matrices]: ...
@overload
def bidiagonalize(A: Matrices, vectors: Literal["none"]) -> tuple[Matrices, Matrices]: ...
@any_array
def bidiagonalize(A: Matrices, vectors: str = "both") -> tuple[Matrices, ...]:
    """Q_b B_b Pt_b = A_b with Q and Ptᵀ of orthonormal columns and B bidiagonal, k = min(m, n).

    A         (batch, m, n) array or MatrixBatch
    vectors   "both": (Q, d, e, Pt); "none": (d, e) alone

    Q is (batch, m, k), d (batch, k) the diagonal of B, e (batch, k − 1) its other entries, Pt (batch, k, n). B is upper
    bidiagonal for m ≥ n and lower bidiagonal for m < n, where e_i stands below d_i, as in LAPACK; signs of d and e
    are not fixed. For a MatrixBatch, d and e are MatrixBatch of columns. At most 1024 columns, or rows where m < n, on
    the GPU. Matrices that hold NaN or Inf get NaN. Raises ValueError for bad arguments.
    Source: Golub & Kahan (1965); Dong et al. (2018), section 4; LAPACK's GEBRD.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = np.random.default_rng(0).standard_normal((10, 6, 4))
    >>> Q, d, e, Pt = batched.bidiagonalize(A)
    >>> bidiagonal = np.stack([np.diag(d[b]) + np.diag(e[b], 1) for b in range(10)])
    >>> bool(np.allclose(Q @ bidiagonal @ Pt, A))
    True
    """
    if vectors not in ("both", "none"):
        raise ValueError(f'bidiagonalize: expected vectors "both" or "none", got {brief(vectors)}')
    results = over_leading(lambda A: twin(A).bidiagonalize(A, vectors), A)
    if isinstance(A, MatrixBatch):
        return results
    first = 1 if vectors == "both" else 0
    return tuple(M[..., 0] if i in (first, first + 1) else M for i, M in enumerate(results))
