"""Copies of matrices, whole, leading parts or transposed, and what one pass over their entries tells: norms."""

from collections.abc import Sequence

import numpy as np

from h2gpu.batched.core.dispatch import repeated, twins_of
from h2gpu.batched.core.matrix_batch import MatrixBatch, ResidentBatch
from h2gpu.batched.core.shapes import over_leading
from h2gpu.texts import brief
from h2gpu.typing import Array, ArrayLike, Integers, Matrices, Truths

twin = twins_of(__name__)


def gather(
    A: MatrixBatch, index: ArrayLike, transpose: Truths | bool = False, out: MatrixBatch | None = None
) -> MatrixBatch:
    """out_b = the leading part of A_index[b] (of its transpose where `transpose` says so), as large as out_b.

    Without `out`: whole matrices, as a new packed MatrixBatch. Raises ValueError for an index that A does not have, or
    an `out` larger than the matrix it takes from. Source: NumPy's `take`, for matrices of differing sizes.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = batched.MatrixBatch.from_matrices([np.ones((2, 3)), np.ones((4, 1))])
    >>> batched.gather(A, [1, 0, 1]).rows.tolist()
    [4, 2, 4]
    """
    index = np.asarray(index, np.int64)
    transpose = np.broadcast_to(transpose, index.shape)
    if len(index) and not (index.min() >= 0 and index.max() < len(A)):
        raise ValueError(f"gather: expected indices of {len(A)} matrices, got {index.min()} to {index.max()}")
    rows, columns = A.rows[index], A.columns[index]
    rows, columns = np.where(transpose, columns, rows), np.where(transpose, rows, columns)
    if out is None:
        out = MatrixBatch.empty(rows, columns, A.dtype, A.xp)
    elif len(out) != len(index) or (out.rows > rows).any() or (out.columns > columns).any():
        raise ValueError(f"gather: expected out of {len(index)} matrices no larger than those of A, got {brief(out)}")
    return twin(A).gather(A, index, transpose, out)


def leading(
    A: MatrixBatch, rows: Integers | None = None, columns: Integers | None = None, *, out: MatrixBatch | None = None
) -> MatrixBatch:
    """The leading rows[b] × columns[b] part of every matrix, copied into a packed MatrixBatch, or as large as out.

    Of matrices whose sizes are on the device, nobody checks that they are as large.

    Raises ValueError where a matrix has fewer rows or columns. Source: LAPACK's LACPY, for many matrices.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = batched.MatrixBatch.from_matrices([np.ones((2, 3)), np.ones((4, 1))])
    >>> batched.leading(A, [1, 2], [2, 1]).buffer.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    out = MatrixBatch.empty(rows, columns, A.dtype, A.xp) if out is None else out
    if isinstance(A, ResidentBatch):
        return twin(A).gather(A, None, False, out)
    return gather(A, np.arange(len(A)), out=out)


def join(batches: Sequence[MatrixBatch], out: MatrixBatch | None = None) -> MatrixBatch:
    """out_b = the leading part, as large as out_b, of the b-th matrix of several batches behind one another.

    batches   at least one, of one precision
    out       None: whole matrices, as a packed MatrixBatch; of one batch that is packed already, itself

    Raises ValueError unless out has as many matrices as they, and their precision; that theirs are as large is their
    maker's business.
    Source: NumPy's `concatenate`, for matrices of differing sizes.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = batched.MatrixBatch.from_matrices([np.ones((2, 3)), np.ones((4, 1))])
    >>> float(batched.join([A, A]).buffer.sum())
    20.0
    """
    batches = [A for A in batches if len(A)] or batches[:1]
    if out is None:
        if len(batches) == 1:
            return batches[0].packed()
        rows, columns = (np.concatenate([getattr(A, side) for A in batches]) for side in ("rows", "columns"))
        out = MatrixBatch.empty(rows, columns, batches[0].dtype, batches[0].xp)
    if len(out) != sum(map(len, batches)):
        raise ValueError(f"join: expected out of {sum(map(len, batches))} matrices, got {brief(out)}")
    if any(A.dtype != out.dtype for A in batches if len(A)):
        raise ValueError(f"join: expected batches of {out.dtype}, got {', '.join(str(A.dtype) for A in batches)}")
    return twin(out).join(batches, out)


def _copied(A: MatrixBatch) -> MatrixBatch:
    """See MatrixBatch.copied."""
    return twin(A).join([A], MatrixBatch.empty(A.rows, A.columns, A.dtype, A.xp))


MatrixBatch.copied = staticmethod(_copied)


def transpose(A: MatrixBatch) -> MatrixBatch:
    """A_bᵀ, copied into a packed MatrixBatch.

    Raises nothing. Source: NumPy's `transpose`, for matrices of differing sizes.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> A = batched.MatrixBatch.from_matrices([np.ones((2, 3)), np.ones((4, 1))])
    >>> batched.transpose(A).rows.tolist()
    [3, 1]
    """
    return gather(A, np.arange(len(A)), True)


def all_finite(A):
    """Whether an array of float32 or float64, of any shape, holds no NaN and no infinity."""
    return twin(A).all_finite(A)


def signs(info):
    """Whether any of the integers, int32 of any shape, is negative, and whether any is positive; waits for a GPU."""
    return twin(info).signs(info)


def add_to_diagonals(A, d):
    """A_bii += d_bi in place, for square matrices of a MatrixBatch, or a contiguous stack (batch, m, n) with m ≥ n.

    d   one number; of a stack also an array where A is, of shape (n,) or (batch, n)
    """
    twin(A).add_to_diagonals(A, d)


@repeated
def frobenius_norms(A: Matrices) -> Array:
    """‖A_b‖_F for every matrix: (batch,) float64 where A lives.

    Raises nothing; NaN gives NaN. Source: Golub & Van Loan (2013), section 2.3; LAPACK's LANGE.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> batched.frobenius_norms(np.array([[[3.0, 4.0]], [[0.0, 1.0]]])).tolist()
    [5.0, 1.0]
    """
    return over_leading(lambda A: twin(A).frobenius_norms(A), A)


def rounding_errors(A: MatrixBatch) -> Array:
    """‖A_b − float32(A_b)‖_F for every matrix: (batch,) float64 where A lives; infinite where float32 overflows.

    Raises nothing; NaN gives NaN. Source: Higham (2002), chapter 2.

    >>> import numpy as np
    >>> from h2gpu import batched
    >>> batched.rounding_errors(np.array([[[0.5, 1.0]], [[0.0, 1e300]]])).tolist()
    [0.0, inf]
    """
    return over_leading(lambda A: twin(A).rounding_errors(A), A)
