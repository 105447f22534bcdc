"""The functions of h2gpu.batched.cpu on CuPy arrays: our kernels, or the vendor's where measured faster."""

import cupy
import numpy as np

from h2gpu.batched.cuda_blocksparse import block_multiply
from h2gpu.batched.cuda_gemm import gemm
from h2gpu.batched.launch import launch, tile_owners, upload
from h2gpu.batched.modules import kernel
from h2gpu.batched.ragged import MatrixBatch, offsets_of, ranges

__all__ = ["block_multiply", "frobenius_norms", "gather", "gemm", "pairwise", "qr", "svd"]

NORM_WARPS = 4
TILE, LINES = 32, 8  # of gather: entries along an edge, rows a pass
PAIR_THREADS, PAIR_RUN = 256, 2048  # of pairs: threads of a block, entries it makes
PAIRS_AT_ONCE = 1 << 23  # pairs whose temporaries exist at a time: some 0.1 GB each in two dimensions


def qr(A, mode):
    """See h2gpu.batched.qr."""
    from h2gpu.batched import cuda_qr

    return cuda_qr.qr(A, mode)


def svd(A, vectors, method):
    """See h2gpu.batched.svd."""
    from h2gpu.batched import cuda_svd

    return cuda_svd.svd(A, vectors, method)


def frobenius_norms(A):
    """See h2gpu.batched.frobenius_norms."""
    A = A if isinstance(A, MatrixBatch) else MatrixBatch.from_stack(cupy.ascontiguousarray(A))
    norms = cupy.empty(len(A), np.float64)
    if len(A):
        offsets, sizes = upload(A.offsets, A.sizes)
        function = kernel("batched/frobenius_norms.cuh", "frobenius_norms", A.dtype, NORM_WARPS)
        launch(function, len(A), NORM_WARPS * 32, (A.buffer, offsets, sizes, norms))
    return norms


def gather(A, index, transpose, out):
    """See h2gpu.batched.gather."""
    if not len(out):
        return out
    index = np.asarray(index)
    counts = -(-out.rows // TILE) * -(-out.columns // TILE)
    sources = A.offsets[index], A.columns[index], np.asarray(transpose)
    first, *table = upload(offsets_of(counts), *sources, out.offsets, out.rows, out.columns)
    owner = tile_owners(counts, first)
    function = kernel("batched/gather.cuh", "gather", A.dtype, TILE, LINES)
    launch(function, len(owner), TILE * LINES, (A.buffer, out.buffer, first, owner, *table))
    return out


def pairwise(function, X, Y, x_starts, y_starts, out):
    """See h2gpu.batched.pairwise; PAIRS_AT_ONCE pairs at a time, whole matrices."""
    X, Y = cupy.ascontiguousarray(X), cupy.ascontiguousarray(Y)
    x_starts, y_starts = np.asarray(x_starts), np.asarray(y_starts)
    before = offsets_of(out.sizes)
    start = 0
    while start < len(out):
        stop = int(np.searchsorted(before, before[start] + PAIRS_AT_ONCE, side="right")) - 1
        piece = slice(start, max(stop, start + 1))
        _pairwise_piece(function, X, Y, x_starts[piece], y_starts[piece], out[piece])
        start = piece.stop
    return out


def _pairwise_piece(function, X, Y, x_starts, y_starts, out):
    count, dim = int(out.sizes.sum()), X.shape[1]
    if not count:
        return
    x, y = cupy.empty((count, dim), X.dtype), cupy.empty((count, dim), X.dtype)
    runs = -(-out.sizes // PAIR_RUN)
    first, *table = upload(offsets_of(runs), x_starts, y_starts, out.columns, out.sizes, offsets_of(out.sizes)[:-1])
    owner = tile_owners(runs, first)
    points = kernel("batched/pairs.cuh", "pairs", X.dtype, PAIR_THREADS, PAIR_RUN)
    launch(points, len(owner), PAIR_THREADS, (X, Y, x, y, dim, first, owner, *table))
    values = function(x, y)
    if out.is_packed:
        out.entries[...] = values
    else:
        out.buffer[cupy.asarray(ranges(out.offsets, out.sizes))] = values
