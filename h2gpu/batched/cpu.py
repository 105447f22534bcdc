"""The reference: batched dense linear algebra by NumPy and LAPACK, threaded over the batch.

Every function takes (batch, m, n) arrays or a MatrixBatch and returns the same kind. This file and the clustering are
the only places with Python loops over matrices; NumPy's linear algebra runs on stacks of matrices of one shape.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from h2gpu.batched.ragged import MatrixBatch, offsets_of, ranges
from h2gpu.batched.threads import parallel, pieces

PANEL_ENTRIES = 1 << 17  # pairs evaluated at a time: their few temporaries stay in a core's cache
TOGETHER = 8  # matrices of one LAPACK call, so that NumPy lets the other threads run
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


def like(A, rows, columns):
    """An uninitialized batch of the kind of A: an array for an array, ragged for ragged."""
    if isinstance(A, MatrixBatch):
        return MatrixBatch.empty(rows, columns, A.dtype)
    return np.empty((len(A), rows, columns), A.dtype)


def shapes(A):
    """Rows and columns: of every matrix for a ragged batch, two numbers for an array."""
    return (A.rows, A.columns) if isinstance(A, MatrixBatch) else A.shape[1:]


def transposed(A, flag):
    """Aᵀ where the flag says so."""
    return A.swapaxes(-1, -2) if flag else A


def gemm(A, B, C, alpha, beta, transa, transb, out):
    def product(A, B, *C):
        P = transposed(A, transa) @ transposed(B, transb)
        if alpha != 1:
            P *= P.dtype.type(alpha)
        if C:
            P += P.dtype.type(beta) * C[0]
        return (P,)

    if out is None:
        rows, columns = shapes(A)[1 if transa else 0], shapes(B)[0 if transb else 1]
        out = like(A, rows, columns)
    return each(product, [out], A, B, *([] if C is None or beta == 0 else [C]))[0]


def triple_product(A, B, C, out):
    out = like(A, A.rows, C.rows) if out is None else out
    return each(lambda A, B, C: (A @ B @ C.swapaxes(-1, -2),), [out], A, B, C)[0]


def qr(A, mode):
    m, n = shapes(A)
    R = like(A, np.minimum(m, n), n)
    if mode == "r":
        return (
            triangles(A, R) if isinstance(A, MatrixBatch) else each(lambda A: (np.linalg.qr(A, mode="r"),), [R], A)[0]
        )
    Q = like(A, m, np.minimum(m, n))
    return tuple(each(np.linalg.qr, [Q, R], A))


def triangles(A, R):
    """R of each matrix of a ragged batch, TOGETHER at a time: rows of zeros, which change no R, make them one height.

    NumPy keeps the interpreter lock in calls for fewer than about 8 matrices: measured on two threads, 1300 × 100
    matrices one by one run no faster than on one thread, eight at a time 2.2 times faster.
    """
    order = np.lexsort((A.rows, A.columns))
    cuts = np.flatnonzero(np.diff(A.columns[order])) + 1
    groups = [part[i : i + TOGETHER] for part in np.split(order, cuts) for i in range(0, len(part), TOGETHER)]

    def run(group):
        stack = np.zeros((len(group), A.rows[group].max(initial=0), A.columns[group].max(initial=0)), A.dtype)
        for b, index in enumerate(group):
            stack[b, : A.rows[index]] = A[int(index)]
        for index, triangle in zip(group, np.linalg.qr(stack, mode="r")):
            R[int(index)][...] = triangle[: R.rows[index]]

    parallel(run, groups)
    return R


def svd(A, vectors, method, return_info=False):
    """See h2gpu.batched.svd."""
    from h2gpu.batched import cpu_svd

    return cpu_svd.svd(A, vectors, method, return_info)


def svd_of_transposed(R, vectors):
    """See h2gpu.batched.svd_of_transposed."""
    from h2gpu.batched import cpu_svd

    return cpu_svd.svd_of_transposed(R, vectors)


def pivoted_qr(A, atol, padded=False):
    """See h2gpu.batched.pivoted_qr."""
    from h2gpu.batched import cpu_svd

    return cpu_svd.pivoted_qr(A, atol, padded)


def truncated_svd(A, atol, padded=False):
    """See h2gpu.batched.truncated_svd."""
    from h2gpu.batched import cpu_svd

    return cpu_svd.truncated_svd(A, atol, padded)


def frobenius_norms(A):
    if not isinstance(A, MatrixBatch):
        return np.linalg.norm(A, axis=(1, 2))
    norms = np.zeros(len(A))

    def run(piece):
        for b in range(piece.start, min(piece.stop, len(A))):
            entries = A[b].ravel()
            norms[b] = (
                np.sqrt(np.dot(entries, entries)) if A.dtype == np.float64 else np.linalg.norm(entries.astype(float))
            )

    parallel(run, stacks(A))
    return norms


def gather(A, index, transpose, out):
    """out_b = the leading part of A_index[b], transposed where transpose[b]."""

    def run(piece):
        for b in range(piece.start, min(piece.stop, len(index))):
            m, n = out.rows[b], out.columns[b]
            out[b][...] = transposed(A[int(index[b])], transpose[b])[:m, :n]

    parallel(run, pieces(out.sizes, WORK_PER_TASK))
    return out


def pairwise(function, X, Y, out):
    """out_b[i, j] = function(X_b[i], Y_b[j]): consecutive blocks of one column in one call."""
    if not len(out):
        return out
    dim = X.columns[0]
    points, starts = X.buffer.reshape(-1, dim), X.offsets // dim
    firsts = np.flatnonzero(np.diff(Y.offsets, prepend=-1) | np.diff(Y.rows, prepend=-1))
    firsts = np.append(firsts, len(out))

    def panel(first, stop):
        Z = Y[first]
        for piece in pieces(out.sizes[first:stop], PANEL_ENTRIES):
            blocks = slice(first + piece.start, first + piece.stop)
            x = points[ranges(starts[blocks], out.rows[blocks])]
            target = out[blocks].entries.reshape(len(x), len(Z))
            if hasattr(function, "into"):
                function.into(x[:, None, :], Z[None, :, :], target)
            else:
                target[...] = function(x[:, None, :], Z[None, :, :])

    def run(piece):
        for g in range(piece.start, piece.stop):
            panel(firsts[g], firsts[g + 1])

    parallel(run, pieces(np.diff(offsets_of(out.sizes)[firsts]), WORK_PER_TASK))
    return out


def block_multiply(A, x, size, transpose):
    """y = A x or Aᵀ x, panel by panel."""
    from h2gpu.batched import cpu_blocksparse

    return cpu_blocksparse.block_multiply(A, x, size, transpose)
