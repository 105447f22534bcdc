"""Copies of matrices, whole, leading parts or transposed, and what one pass over their entries tells: norms."""

import numpy as np

from h2gpu.batched.core.dispatch import twins_of
from h2gpu.batched.core.matrix_batch import MatrixBatch, ResidentBatch
from h2gpu.batched.core.shapes import over_leading

twin = twins_of(__name__)


def gather(A, index, transpose=False, out=None):
    """out_b = the leading part of A_index[b] (of its transpose where `transpose` says so), as large as out_b.

    Without `out`: whole matrices, as a new packed MatrixBatch. Raises ValueError for an index that A does not have, or
    an `out` larger than the matrix it takes from.
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
        raise ValueError(f"gather: expected out of {len(index)} matrices no larger than those of A, got {out!r}")
    return twin(A).gather(A, index, transpose, out)


def leading(A, rows=None, columns=None, *, out=None):
    """The leading rows[b] × columns[b] part of every matrix, copied into a packed MatrixBatch, or as large as out.

    Of matrices whose sizes are on the device, nobody checks that they are as large.
    """
    out = MatrixBatch.empty(rows, columns, A.dtype, A.xp) if out is None else out
    if isinstance(A, ResidentBatch):
        return twin(A).gather(A, None, False, out)
    return gather(A, np.arange(len(A)), out=out)


def join(batches, out):
    """out_b = the leading part, as large as out_b, of the b-th matrix of several batches behind one another.

    Raises ValueError unless out has as many matrices as they; that theirs are as large is their maker's business.
    """
    if len(out) != sum(map(len, batches)):
        raise ValueError(f"join: expected out of {sum(map(len, batches))} matrices, got {out!r}")
    return twin(out).join(batches, out)


def transpose(A):
    """A_bᵀ, copied into a packed MatrixBatch."""
    return gather(A, np.arange(len(A)), True)


def all_finite(A):
    """Whether an array of float32 or float64, of any shape, holds no NaN and no infinity."""
    return twin(A).all_finite(A)


def signs(info):
    """Whether any of the integers, int32 of any shape, is negative, and whether any is positive; waits for a GPU."""
    return twin(info).signs(info)


def frobenius_norms(A):
    """‖A_b‖_F for every matrix: (batch,) float64 where A lives."""
    return over_leading(lambda A: twin(A).frobenius_norms(A), A)


def rounding_errors(A):
    """‖A_b − float32(A_b)‖_F for every matrix: (batch,) float64 where A lives; infinite where float32 overflows."""
    return over_leading(lambda A: twin(A).rounding_errors(A), A)
