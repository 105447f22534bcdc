"""Products with vectors and of symmetric matrices, and sums, on the GPU.

kernels/products/gemv.cuh, gemv_run.cuh, symv.cuh, syrk.cuh, axpy.cuh: a launch each, whatever the sizes of the batch.
Or cuBLAS for transposed matrices of one shape, where a tuning row says so: vendor.py.
"""

import math

import cupy
import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.device import tuning
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, Ready, Tiling, addresses, upload
from h2gpu.batched.device.limits import FEW_RESERVED_BYTES, multiprocessors, shared_limit
from h2gpu.batched.device.plans import remembered
from h2gpu.batched.products import fixed, fixed_layout, vendor
from h2gpu.batched.products.choice import symmetric_limits
from h2gpu.batched.products.gemm import THREADS as PRODUCT_THREADS
from h2gpu.batched.products.gemm import shared_bytes, tile_edge
from h2gpu.batched.products.vendor import PIECE

BY_ROWS, BY_COLUMNS, BY_LOWER, BY_UPPER = range(4)  # RunWay of products/gemv_run.cuh
RUN_THREADS, RUN_ROW = 256, 384  # its threads; bytes of a row of a symmetric matrix, of which others read half
RUN_BYTES, RUN_FEW = 16 << 10, 8  # bytes of a block's matrices; twice as many where they hold fewer matrices than that
RUN_MOST = 103 << 10  # bytes of a matrix at most
RUN_TERMS, RUN_BLOCKS, RUN_LONG = 32, 8, 8  # see `in_runs`: terms; blocks of a multiprocessor; terms for each sum
COLUMNS_ROW, COLUMNS_TERMS = 384, 64  # see `in_runs`: bytes of a row, terms; 0.94 to 0.98 of the time of runs
ONE_ROW, WHOLE_BLOCK = 16, 4  # warps of a multiprocessor: where there are fewer, a row is a team's, a row is a block's
GEMV_THREADS, GEMV_RESIDENT = 128, 1536  # of a block with teams of one row; of a multiprocessor, at 40 registers each
SPILL_BYTES = 24  # of symv and trsm at most, by ptxas
NO_LISTS = (NULL,) * 5  # of a batch of one shape, for syrk
ENTRIES_THREADS, ENTRIES_BYTES = 256, 16 << 10  # of the kernel: of a block, and the bytes that it writes
AXPY_THREADS, AXPY_RUN = 256, 8192  # of the kernel: of a block, and the bytes that it writes


def gemv(A, x, y, alpha, beta, trans):
    """Columns x and y."""
    y, out = None if beta == 0 else y, _empty_columns(A, 1 if trans else 0)
    beta = 0 if y is None else beta
    if isinstance(A, MatrixBatch):
        table, ready = _table(A, x, y, out), _gemv(A.dtype, len(A), *A.bounds, bool(trans), False, out.rows)
    else:
        if trans and y is None and vendor.suits_columns(A.dtype, *A.shape):
            vendor.column_product(A.dtype, *A.shape, alpha)(x, A, out)
            return out
        way = BY_COLUMNS if trans else BY_ROWS
        aligned = not (A.data.ptr | x.data.ptr) % PIECE
        if in_runs(A.dtype, *A.shape, way, aligned):
            return _run(A, x, y, out, alpha, beta, way)
        table, ready = NULL, gemv_plan(A.dtype, *A.shape, bool(trans), aligned)
    ready(*addresses(A, x, y, out), table, behind=(A.dtype.type(alpha), A.dtype.type(beta)))
    return out


def _gemv(dtype, batch, m, n, trans, aligned, sizes=None):
    """The launch; aligned: arrays begin where a copy of PIECE bytes can   sizes: of the results of a ragged batch."""
    each = PIECE // dtype.itemsize
    aligned = aligned and n % each == 0
    if trans:
        count = each if aligned else 1
        row = knobs_of("gemv_t", dtype, pieces=-(-n // count), rows=m)
        lanes, threads = row["lanes"], row["threads"]
        if sizes is None:
            threads = resident(batch * -(-n // (lanes * count)), threads)
        shared = threads // WARP * lanes * count * dtype.itemsize
        instance = "gemv_columns", dtype, threads, lanes, count
        tiles = _tiles(sizes, batch, n, lanes * count)
        blocks = tiles.blocks
    else:
        row = knobs_of("gemv", dtype, pieces=-(-n // each) + (not aligned))
        lanes, rows, threads, shared = row["lanes"], row["rows"], row["threads"], 0
        if sizes is None:
            lanes, rows, threads = spread(batch, m, lanes, rows, threads)
        instance = "gemv_rows", dtype, threads, lanes, rows, aligned
        tiles = _tiles(sizes, batch, m, threads // lanes * rows)
        blocks = tiles.blocks if sizes is not None else -(-batch * -(-m // rows) // (threads // lanes))
    function = kernel("products/gemv.cuh", *instance, shared_bytes=shared)
    return Ready(function, blocks, threads, shared, (np.int64(batch), *tiles.arguments, m, n))


def spread(batch, m, lanes, rows, threads):
    """lanes, rows and threads, or those of smaller teams' rows where so few warps cannot hide how far memory is.

    200 matrices of 16 × 512 on an H200, four rows a warp: 6 warps a multiprocessor.
    """
    full = multiprocessors(cupy.cuda.runtime.getDevice()) * WARP
    if batch * -(-m // rows) * lanes >= ONE_ROW * full:
        return lanes, rows, threads
    return (GEMV_THREADS if batch * m * lanes < WHOLE_BLOCK * full else lanes), 1, GEMV_THREADS


def resident(blocks, threads):
    """Threads of each of so many blocks, or half where only then no block waits for another to end.

    500 matrices of 128 × 128 on an H200, transposed: 1000 blocks, of which 792 of 256 threads fit.
    """
    fit = multiprocessors(cupy.cuda.runtime.getDevice()) * (GEMV_RESIDENT // threads)
    return threads // 2 if threads > GEMV_THREADS and fit < blocks <= 2 * fit else threads


gemv_plan = remembered(_gemv)


def symv(A, x, y, alpha, beta, lower):
    """Columns x and y."""
    y, out = None if beta == 0 else y, _empty_columns(A, 0)
    beta = 0 if y is None else beta
    way = BY_LOWER if lower else BY_UPPER
    if not isinstance(A, MatrixBatch) and in_runs(A.dtype, *A.shape, way):
        return _run(A, x, y, out, alpha, beta, way)
    table = _table(A, x, y, out) if isinstance(A, MatrixBatch) else NULL
    ready = symv_plan(A.dtype, len(A), bounds_of(A)[0], bool(lower))
    ready(*addresses(A, x, y, out), table, behind=(A.dtype.type(alpha), A.dtype.type(beta)))
    return out


@remembered
def symv_plan(dtype, batch, n, lower):
    row = knobs_of("symv", dtype, rows=n)
    warps = row["warps"]
    shared = symv_bytes(dtype, n, warps)
    check_shared("symv", shared, n)
    function = kernel("products/symv.cuh", "symv", dtype, warps, row["steps"], lower, shared_bytes=shared)
    return Ready(function, batch, warps * WARP, shared, (np.int64(batch), n))


def symv_bytes(dtype, n, warps):
    """Shared memory of a block of symv: x, sums along rows, and sums along columns of each warp."""
    return (2 + warps) * max(1, n) * dtype.itemsize


def in_runs(dtype, batch, m, n, way, aligned=False):
    """Whether a batch of one shape goes to kernels/products/gemv_run.cuh, where a thread adds up a result alone.

    Not where a block has fewer sums than they have terms and few blocks follow, or many times fewer. Nor where columns
    are added up, of rows that a warp reads by whole pieces (aligned: arrays begin at one) and that are many.
    """
    row = n * dtype.itemsize
    if way == BY_COLUMNS and aligned and row % PIECE == 0 and row >= COLUMNS_ROW and m >= COLUMNS_TERMS:
        return False
    if way not in (BY_ROWS, BY_COLUMNS):
        return m * row <= RUN_MOST and row <= RUN_ROW
    (results, terms), each = (n, m) if way == BY_COLUMNS else (m, n), run_each(dtype, batch, m, n)
    few = batch < RUN_BLOCKS * multiprocessors(cupy.cuda.runtime.getDevice()) * each
    most = results * each * (1 if few else RUN_LONG)
    return m * row <= RUN_MOST and terms <= max(RUN_TERMS, most)


def run_each(dtype, batch, m, n):
    """Matrices of a block: its bytes' worth, or fewer, that every multiprocessor has a block."""
    size = max(m * n, m, n, 1) * dtype.itemsize
    most = (RUN_BYTES if size * RUN_FEW <= RUN_BYTES else 2 * RUN_BYTES) // size
    return max(1, min(most, -(-batch // multiprocessors(cupy.cuda.runtime.getDevice()))))


def _run(A, x, y, out, alpha, beta, way):
    ready = run_plan(A.dtype, *A.shape, way)
    ready(*addresses(A, x, y, out), behind=(A.dtype.type(alpha), A.dtype.type(beta)))
    return out


@remembered
def run_plan(dtype, batch, m, n, way):
    each = run_each(dtype, batch, m, n)
    shared = run_bytes(dtype, each * m * n, each * (m if way == BY_COLUMNS else n))
    function = kernel("products/gemv_run.cuh", "gemv_run", dtype, RUN_THREADS, way, shared_bytes=shared)
    blocks = -(-batch // each) if (n if way == BY_COLUMNS else m) else 0
    return Ready(function, blocks, RUN_THREADS, shared, (np.int64(batch), each, m, n))


def run_bytes(dtype, entries, vectors):
    """Shared memory of a run of matrices and their vectors x."""
    return -(-(entries * dtype.itemsize + PIECE - 1) // PIECE) * PIECE + vectors * dtype.itemsize


def syrk(A, C, alpha, beta, trans, lower):
    """See h2gpu.batched.syrk."""
    trans, lower = bool(trans), bool(lower)
    if isinstance(A, MatrixBatch):
        sides = (1, 0) if trans else (0, 1)
        n, k = (A.bounds[side] for side in sides)
        A, C = A.on_host(), None if C is None else C.on_host()
        orders, inner = ((A.rows, A.columns)[side] for side in sides)
        out = MatrixBatch.empty(orders, orders, A.dtype, cupy)
        lists = upload(A.offsets, (C or out).offsets, out.offsets, orders, inner)
        ready = _syrk(A.dtype, len(A), n, k, trans, lower, orders)
    else:
        n, k = A.shape[:0:-1] if trans else A.shape[1:]
        out, lists = cupy.empty((len(A), n, n), A.dtype), NO_LISTS
        method, ready = syrk_plan(A.dtype, len(A), n, k, trans, lower, C is None, not A.data.ptr % PIECE)
        if method == "fixed":
            ready(A, A, NULL, out, behind=(A.dtype.type(alpha), A.dtype.type(0)))
            return out
        if method == "entries":
            lists = ()
    scalars = A.dtype.type(alpha), A.dtype.type(beta if C is not None else 0)
    ready(*addresses(A, C, out), *lists, behind=scalars)
    return out


def _syrk(dtype, batch, n, k, trans, lower, orders=None):
    """The launch; orders: of the results of a ragged batch."""
    edge = tile_edge(() if orders is None else orders, n)
    tiles = _tiles(orders, batch, n, edge, lambda count: count * (count + 1) // 2)
    shared = shared_bytes(dtype, (edge,) if n <= edge else (edge, edge))  # tiles on the diagonal alone need half
    function = kernel("products/syrk.cuh", "syrk", dtype, edge, trans, lower, n <= edge, shared_bytes=shared)
    return Ready(function, tiles.blocks, PRODUCT_THREADS, shared, (n, k, *tiles.arguments))


@remembered
def syrk_plan(dtype, batch, n, k, trans, lower, alone, aligned):
    """(method, launch) for a batch of one shape by a row of kernels/tuning/…/syrk.csv; alone: without C."""
    method = knobs_of("syrk", dtype, **symmetric_limits(batch, n, k, alone))["method"]
    if method == "fixed" and alone and fixed.plan(dtype, n, n, k, trans, not trans):
        part = fixed_layout.LOWER if lower else fixed_layout.UPPER
        return method, fixed.ready(dtype, batch, n, n, k, trans, not trans, part)
    if method == "entries":
        run, rows = ENTRIES_BYTES // dtype.itemsize, aligned and (trans or k == 1) and n * dtype.itemsize % PIECE == 0
        function = kernel("products/syrk_entries.cuh", "syrk_entries", dtype, trans, lower, rows)
        return method, Ready(function, -(-batch * n * n // run), ENTRIES_THREADS, 0, (np.int64(batch), n, k))
    return "tiles", _syrk(dtype, batch, n, k, trans, lower)


def axpy(X, Y, alpha):
    """alpha: a number of X's precision, or (batch,) of them."""
    one, ragged = np.ndim(alpha) == 0, isinstance(X, MatrixBatch)
    out = MatrixBatch.empty(X.rows, X.columns, X.dtype, cupy) if ragged else cupy.empty(X.shape, X.dtype)
    if one:  # whatever the shapes: one run
        X, Y = (X.packed(), Y.packed()) if ragged else (X, Y)
        axpy_run(X.dtype, out.buffer.size if ragged else out.size)(*addresses(X, Y, out), behind=(alpha,))
        return out
    tiles = _tiles(X.sizes if ragged else None, len(X), math.prod(bounds_of(X)), AXPY_RUN // X.dtype.itemsize)
    count, table = out.buffer.size if ragged else out.size, _table(X, Y, Y, out) if ragged else NULL
    numbers = np.int64(len(X)), *tiles.arguments, *bounds_of(X), np.int64(count)
    ready = Ready(kernel("products/axpy.cuh", "axpy", X.dtype), tiles.blocks, AXPY_THREADS, 0, numbers)
    ready(*addresses(X, Y, out), table, behind=(alpha,))
    return out


@remembered
def axpy_run(dtype, count):
    """The launch for so many entries, behind one another, and one alpha."""
    function, each = kernel("products/axpy.cuh", "axpy_flat", dtype), PIECE // dtype.itemsize
    return Ready(function, -(-count // (AXPY_THREADS * each)), AXPY_THREADS, 0, (np.int64(count),))


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
    return upload(A.offsets, x.offsets, y.offsets, out.offsets, A.rows, A.columns)
