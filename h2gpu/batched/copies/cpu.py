"""Copies and norms by NumPy, on the threads of this process."""

import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.offsets import offsets_of, ranges
from h2gpu.batched.device.stacks import WORK_PER_TASK, stacks, transposed
from h2gpu.batched.device.threads import parallel, pieces

SLICED = 100  # entries of a matrix on average from which slices take less CPU time than an index of every entry
LARGE = 1 << 12  # entries of a matrix that are worth a call
RUN = 1 << 14  # entries that are rounded at a time
SAFE_SQUARES, SAFE_SCALE = (2.0**-900, 2.0**1000), 2.0**600  # sums of squares to be trusted; what others are scaled by


def gather(A, index, transpose, out):
    """out_b = the leading part of A_index[b], transposed where transpose[b]."""

    def run(piece):
        sources, targets, turns = A[index[piece]], out[piece], transpose[piece]
        if targets.is_packed and not turns.any() and _alike(sources, targets):
            return _copy(sources, targets.entries)
        for M, W, turn in zip(sources.matrices(), targets.matrices(), turns.tolist()):
            W[...] = transposed(M, turn)[: W.shape[0], : W.shape[1]]

    parallel(run, pieces(out.sizes, WORK_PER_TASK))
    return out


def join(batches, out):
    """The leading parts of all matrices of several batches."""
    first = 0
    for A in batches:
        part = out[first : first + len(A)]
        first += len(A)
        if part.is_packed and _alike(A, part):
            _copy(A, part.entries)
        else:
            gather(A, np.arange(len(A)), np.zeros(len(A), bool), part)
    return out


def _alike(A, B):
    """Whether matrices, as many, have the same shapes."""
    return bool((A.rows == B.rows).all() and (A.columns == B.columns).all())


def _copy(A, entries):
    """The entries of all matrices, one behind the other."""
    if A.is_packed:
        entries[...] = A.entries
    elif len(entries) < SLICED * len(A):
        A.buffer.take(ranges(A.offsets, A.sizes), out=entries, mode="clip")  # others go by a buffer of NumPy's
    else:
        ends = (A.offsets + A.sizes).tolist()
        np.concatenate([A.buffer[i:j] for i, j in zip(A.offsets.tolist(), ends)], out=entries)


def add_to_diagonals(A, d):
    """See h2gpu.batched.copies.add_to_diagonals."""
    if isinstance(A, MatrixBatch):
        for M in A.matrices():
            M.reshape(-1)[:: len(M) + 1] += d
        return
    n = A.shape[2]
    A.reshape(len(A), -1)[:, : n * n : n + 1] += d


def all_finite(A):
    return bool(np.isfinite(A).all())


def signs(info):
    """See h2gpu.batched.copies.signs."""
    return bool((info < 0).any()), bool((info > 0).any())


def frobenius_norms(A):
    return norms(A, lambda entries: entries.astype(np.float64, copy=False))


def rounding_errors(A):
    return norms(A, _rounded_off)


def _rounded_off(entries):
    """What float32 leaves of entries, in runs that a cache holds: 1 ns an entry, where whole arrays take 3 to 5."""
    off, narrow = np.empty(len(entries)), np.empty(min(RUN, len(entries)), np.float32)
    for first in range(0, len(entries), RUN):
        x, rest = entries[first : first + RUN], off[first : first + RUN]
        narrow[: len(x)] = x
        rest[...] = narrow[: len(x)]
        np.subtract(x, rest, out=rest)
    return off


def norms(A, change):
    """Roots of the sums of squares of what `change` makes of each matrix's entries, float64."""
    found = np.zeros(len(A))

    def run(piece):
        part = A[piece]
        with np.errstate(over="ignore"):
            if isinstance(A, MatrixBatch):
                entries, sizes = change(part.entries), part.sizes
            else:
                entries, sizes = change(part.reshape(-1)), np.full(len(part), part[0].size)
            ends, squares = offsets_of(sizes), sums_of_squares(entries, sizes)
            found[piece] = np.sqrt(squares)
            for b in np.flatnonzero(~((SAFE_SQUARES[0] < squares) & (squares < SAFE_SQUARES[1]))):
                found[piece][b] = norm(entries[ends[b] : ends[b + 1]], squares[b])

    parallel(run, stacks(A))
    return found


def sums_of_squares(x, sizes):
    """Of float64 matrices of these sizes, whose entries follow one another.

    By products of vectors where matrices are alike or large: 0.7 ns an entry, where squares are stored and added 1.5.
    """
    if len(sizes) and (sizes == sizes[0]).all():
        return np.einsum("ij,ij->i", *2 * [x.reshape(len(sizes), sizes[0])])
    ends, held, squares = offsets_of(sizes), sizes > 0, np.zeros(len(sizes))
    if len(x) > LARGE * len(sizes):
        squares[:] = [np.dot(v, v) for v in np.split(x, ends[1:-1])]
    elif held.any():
        squares[held] = np.add.reduceat(x * x, ends[:-1][held])
    return squares


def norm(x, square):
    """‖x‖ of float64 entries, whose squares sum to `square` unless that leaves the range."""
    if SAFE_SQUARES[0] < square < SAFE_SQUARES[1] or np.isnan(square):
        return np.sqrt(square)
    scale = SAFE_SCALE if square < 1 else 1 / SAFE_SCALE
    return np.sqrt(np.dot(x * scale, x * scale)) / scale
