"""Copies and norms by NumPy, on the threads of this process."""

import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of
from h2gpu.batched.device.stacks import WORK_PER_TASK, stacks, transposed
from h2gpu.batched.device.threads import parallel, pieces

SAFE_SQUARES, SAFE_SCALE = (2.0**-900, 2.0**1000), 2.0**600  # sums of squares to be trusted; what others are scaled by


def gather(A, index, transpose, out):
    """out_b = the leading part of A_index[b], transposed where transpose[b]."""

    def run(piece):
        sources, turns = A[index[piece]].matrices(), transpose[piece].tolist()
        for M, W, turn in zip(sources, out[piece].matrices(), turns):
            W[...] = transposed(M, turn)[: W.shape[0], : W.shape[1]]

    parallel(run, pieces(out.sizes, WORK_PER_TASK))
    return out


def join(batches, out):
    """The leading parts of all matrices of several batches."""
    first = 0
    for A in batches:
        part = out[first : first + len(A)]
        first += len(A)
        if A.is_packed and part.is_packed and np.array_equal(A.sizes, part.sizes) and (A.columns == part.columns).all():
            part.entries[...] = A.entries
        else:
            gather(A, np.arange(len(A)), np.zeros(len(A), bool), part)
    return out


def all_finite(A):
    return bool(np.isfinite(A).all())


def signs(info):
    """See h2gpu.batched.copies.signs."""
    return bool((info < 0).any()), bool((info > 0).any())


def frobenius_norms(A):
    return norms(A, lambda entries: entries.astype(np.float64, copy=False))


def rounding_errors(A):
    def rounded_off(entries):
        with np.errstate(over="ignore"):
            return (entries - entries.astype(np.float32)).astype(np.float64, copy=False)

    return norms(A, rounded_off)


def norms(A, change):
    """Roots of the sums of squares of what `change` makes of each matrix's entries, float64."""
    found = np.zeros(len(A))

    def run(piece):
        part = A[piece]
        with np.errstate(over="ignore"):
            if isinstance(A, MatrixBatch):
                entries, ends = change(part.entries), offsets_of(part.sizes)
                held, squares = part.sizes > 0, np.zeros(len(part))
                if held.any():
                    squares[held] = np.add.reduceat(entries * entries, ends[:-1][held])
            else:
                entries, ends = change(part.reshape(-1)), part[0].size * np.arange(len(part) + 1)
                squares = np.einsum("ij,ij->i", *2 * [entries.reshape(len(part), -1)])
            found[piece] = np.sqrt(squares)
            for b in np.flatnonzero(~((SAFE_SQUARES[0] < squares) & (squares < SAFE_SQUARES[1]))):
                found[piece][b] = norm(entries[ends[b] : ends[b + 1]], squares[b])

    parallel(run, stacks(A))
    return found


def norm(x, square):
    """‖x‖ of float64 entries, whose squares sum to `square` unless that leaves the range."""
    if SAFE_SQUARES[0] < square < SAFE_SQUARES[1] or np.isnan(square):
        return np.sqrt(square)
    scale = SAFE_SCALE if square < 1 else 1 / SAFE_SCALE
    return np.sqrt(np.dot(x * scale, x * scale)) / scale
