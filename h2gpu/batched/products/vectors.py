"""Products with vectors and of symmetric matrices, and sums, on the GPU.

kernels/products/gemv.cuh, symv.cuh, syrk.cuh, axpy.cuh: a launch each, whatever the sizes of the batch.
"""

import cupy
import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.device import tuning
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, Tiling, addresses, launch, upload
from h2gpu.batched.device.limits import FEW_RESERVED_BYTES, shared_limit
from h2gpu.batched.products.gemm import THREADS as PRODUCT_THREADS
from h2gpu.batched.products.gemm import shared_bytes, tile_edge

PIECE = 16  # bytes that a thread of gemv reads at a time
SPILL_BYTES = 24  # of symv and trsm at most, by ptxas
AXPY_THREADS, AXPY_RUN = 256, 2048  # of the kernel: of a block, and its entries


def gemv(A, x, y, alpha, beta, trans):
    """Columns x and y."""
    (m, n), ragged = bounds_of(A), isinstance(A, MatrixBatch)
    y, out = None if beta == 0 else y, _empty_columns(A, 1 if trans else 0)
    table = _table(A, x, y, out) if ragged else NULL
    size, buffers = A.dtype.itemsize, addresses(A, x, y, out)
    each = PIECE // size
    aligned = not ragged and n % each == 0 and not any(M.data.ptr % PIECE for M in (A, x))
    if trans:
        count = each if aligned else 1
        row = knobs_of("gemv_t", A.dtype, pieces=-(-n // count), rows=m)
        lanes, threads = row["lanes"], row["threads"]
        instance, shared = ("gemv_columns", A.dtype, threads, lanes, count), threads // WARP * lanes * count * size
        tiles = _tiles(out.rows if ragged else None, len(A), n, lanes * count)
        blocks = tiles.blocks
    else:
        row = knobs_of("gemv", A.dtype, pieces=-(-n // each) + (not aligned))
        lanes, rows, threads, shared = row["lanes"], row["rows"], row["threads"], 0
        instance = "gemv_rows", A.dtype, threads, lanes, rows, aligned
        tiles = _tiles(out.rows if ragged else None, len(A), m, threads // lanes * rows)
        blocks = tiles.blocks if ragged else -(-len(A) * -(-m // rows) // (threads // lanes))
    function = kernel("products/gemv.cuh", *instance, shared_bytes=shared)
    scalars = A.dtype.type(alpha), A.dtype.type(beta)
    launch(function, blocks, threads, (*buffers, table, np.int64(len(A)), *tiles.arguments, m, n, *scalars), shared)
    return out


def symv(A, x, y, alpha, beta, lower):
    """Columns x and y."""
    n, y, out = bounds_of(A)[0], None if beta == 0 else y, _empty_columns(A, 0)
    warps = knobs_of("symv", A.dtype, rows=n)["warps"]
    shared = symv_bytes(A.dtype, n, warps)
    check_shared("symv", shared, n)
    table = _table(A, x, y, out) if isinstance(A, MatrixBatch) else NULL
    function = kernel("products/symv.cuh", "symv", A.dtype, warps, bool(lower), shared_bytes=shared)
    arguments = *addresses(A, x, y, out), table, np.int64(len(A)), n, A.dtype.type(alpha), A.dtype.type(beta)
    launch(function, len(A), warps * WARP, arguments, shared)
    return out


def symv_bytes(dtype, n, warps):
    """Shared memory of a block of symv: x, sums along rows, and sums along columns of each warp."""
    return (2 + warps) * max(1, n) * dtype.itemsize


def syrk(A, C, alpha, beta, trans, lower):
    """See h2gpu.batched.syrk."""
    sides = (1, 0) if trans else (0, 1)
    n, k = (bounds_of(A)[side] for side in sides)
    if isinstance(A, MatrixBatch):
        A, C = A.on_host(), None if C is None else C.on_host()
        orders, inner = ((A.rows, A.columns)[side] for side in sides)
        out = MatrixBatch.empty(orders, orders, A.dtype, cupy)
        lists = upload(A.offsets, (C or out).offsets, out.offsets, orders, inner)
        edge = tile_edge(orders, n)
    else:
        orders, out, lists = None, cupy.empty((len(A), n, n), A.dtype), [NULL] * 5
        edge = tile_edge((), n)
    tiles = _tiles(orders, len(A), n, edge, lambda count: count * (count + 1) // 2)
    shared = shared_bytes(A.dtype, (edge, edge))
    function = kernel("products/syrk.cuh", "syrk", A.dtype, edge, bool(trans), bool(lower), shared_bytes=shared)
    buffers, scalars = (
        addresses(A, C, out),
        (A.dtype.type(alpha), A.dtype.type(beta if C is not None else 0)),
    )
    launch(function, tiles.blocks, PRODUCT_THREADS, (*buffers, *lists, n, k, *tiles.arguments, *scalars), shared)
    return out


def axpy(X, Y, alpha):
    """alpha: a number of X's precision, or (batch,) of them."""
    one, table = np.ndim(alpha) == 0, NULL
    if isinstance(X, MatrixBatch):
        out = MatrixBatch.empty(X.rows, X.columns, X.dtype, cupy)
        if one:
            X, Y = X.packed(), Y.packed()
        else:
            table = _table(X, Y, Y, out)
    else:
        out = cupy.empty_like(X)
    batch, (m, n), sizes = len(X), bounds_of(X), X.sizes if isinstance(X, MatrixBatch) else None
    if one:  # whatever the shapes: one run
        batch, m, n, sizes = 1, 1, out.buffer.size if isinstance(out, MatrixBatch) else out.size, None
        m, n = -(-n // AXPY_RUN), AXPY_RUN
    tiles = _tiles(sizes, batch, m * n, AXPY_RUN)
    alphas, factor = (NULL, alpha) if one else (alpha, X.dtype.type(0))
    count = np.int64(out.buffer.size if isinstance(out, MatrixBatch) else out.size)
    arguments = *addresses(X, Y, out), table, np.int64(batch), *tiles.arguments, m, n, count, alphas, factor
    launch(kernel("products/axpy.cuh", "axpy", X.dtype), tiles.blocks, AXPY_THREADS, arguments)
    return out


def check_shared(name, shared, n):
    limit = shared_limit(cupy.cuda.Device().id, FEW_RESERVED_BYTES)
    if shared > limit:
        raise ValueError(f"{name}: expected matrices whose vectors fit in {limit} bytes of shared memory, got n = {n}")


def knobs_of(routine, dtype, **sizes):
    """The tuning row for numbers of so many bytes; float64's for more."""
    return tuning.row(routine, np.float32 if dtype.itemsize == 4 else np.float64, **sizes)


def _tiles(sizes, batch, bound, edge, tiles_of=lambda count: count):
    """Tiling of sizes[b] ≤ bound entries (None: bound each) in pieces of `edge`; tiles_of: tiles of so many pieces."""
    if sizes is None:
        each = tiles_of(-(-bound // edge))
        return Tiling(batch * each, each)
    return Tiling.of(tiles_of(-(-sizes // edge)))


def bounds_of(A):
    return A.bounds if isinstance(A, MatrixBatch) else A.shape[1:]


def _empty_columns(A, side):
    """Columns of as many rows as A_b has rows (side 0) or columns (1)."""
    if isinstance(A, MatrixBatch):
        rows = (A.on_host().rows, A.on_host().columns)[side]
        return MatrixBatch.empty(rows, np.ones_like(rows), A.dtype, cupy)
    return cupy.empty((len(A), A.shape[1 + side], 1), A.dtype)


def _table(A, x, y, out):
    """As kernels/products/thread/operands.cuh wants it."""
    A, x, y = A.on_host(), x.on_host(), (out if y is None else y).on_host()
    return cupy.asarray(np.stack([A.offsets, x.offsets, y.offsets, out.offsets, A.rows, A.columns]))
