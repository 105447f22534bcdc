"""Stacks of matrices of one shape, and work on all stacks of a batch on the threads of this process."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.device.threads import parallel, pieces

FEW_ALIKE = 6  # matrices of one shape on average, below which stacking costs more than it saves
WORK_PER_TASK = 1 << 19  # entries a thread takes at a time: large against a task's 50 µs, small against any batch


def stacks(A):
    """Slices of a batch, each of about WORK_PER_TASK entries."""
    if isinstance(A, MatrixBatch):
        return pieces(A.sizes, WORK_PER_TASK)
    step = max(1, WORK_PER_TASK // max(1, A.shape[-2] * A.shape[-1]))
    return [slice(i, i + step) for i in range(0, len(A), step)]


def same_shapes(parts):
    """Index arrays (or one slice for all) of the matrices that agree in shape in every one of the ragged parts."""
    sides = np.stack([side for part in parts for side in (part.rows, part.columns)])
    if (sides == sides[:, :1]).all():
        return [slice(None)] if len(parts[0]) else []
    order = np.lexsort(sides)
    return np.split(order, np.flatnonzero((np.diff(sides[:, order]) != 0).any(axis=0)) + 1)


def windows(A):
    """For ragged matrices of one shape: every run of their length in the buffer, (positions, rows·columns), a view."""
    return sliding_window_view(A.buffer, int(A.sizes[0]), writeable=True)


def stack(A):
    """Ragged matrices of one shape as (batch, m, n): a view where they follow one another, else copied."""
    view = A.as_stack()
    return windows(A)[A.offsets].reshape(len(A), int(A.rows[0]), int(A.columns[0])) if view is None else view


def store(A, values):
    """The (batch, m, n) values into ragged matrices of one shape."""
    view = A.as_stack()
    if view is None:
        windows(A)[A.offsets] = values.reshape(len(A), -1)
    else:
        view[...] = values


def each(work, outputs, *batches):
    """work(*stacks) → results, stored into outputs: every stack holds the matrices of one shape of a slice.

    Matrices of which few are alike go one by one. Others are stacked even where that copies them: measured on two
    threads, products of 64 × 64 matrices one by one run no faster than on one thread, because NumPy hands the
    interpreter lock to and fro.
    """

    def run(piece):
        parts, outs = [A[piece] for A in batches], [out[piece] for out in outputs]
        if not isinstance(parts[0], MatrixBatch):
            for out, result in zip(outs, work(*parts)):
                out[...] = result
            return
        groups = same_shapes(parts)
        if FEW_ALIKE * len(groups) > len(parts[0]):
            for targets, matrices in zip(
                zip(*(out.matrices() for out in outs)), zip(*(part.matrices() for part in parts))
            ):
                for target, result in zip(targets, work(*matrices)):
                    target[...] = result
            return
        for group in groups:
            results = work(*(stack(part[group]) for part in parts))
            for out, result in zip(outs, results):
                store(out[group], result)

    parallel(run, stacks(batches[0]))
    return outputs


def like(A, rows, columns, dtype=None):
    """An uninitialized batch of the kind of A: an array for an array, ragged for ragged; of its dtype, or another."""
    dtype = A.dtype if dtype is None else dtype
    if isinstance(A, MatrixBatch):
        return MatrixBatch.empty(rows, columns, dtype)
    return np.empty((len(A), rows, columns), dtype)


def shapes(A):
    """Rows and columns: of every matrix for a ragged batch, two numbers for an array."""
    return (A.rows, A.columns) if isinstance(A, MatrixBatch) else A.shape[1:]


def transposed(A, flag):
    """Aᵀ where the flag says so."""
    return A.swapaxes(-1, -2) if flag else A
