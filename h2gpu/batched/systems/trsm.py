"""Triangular systems with many right-hand sides on the GPU: kernels/systems/trsm.cuh, two kernels, or cuBLAS.

A row of kernels/tuning/<device>/trsm.csv says which: "columns", a thread a right-hand side; "tiles", threads share the
rows of a tile; "vendor", for one shape where CuPy wraps cuBLAS's batched routine, else "tiles". Of a batch with much to
do (products/choice.py) "vendor" and larger triangles are cuBLAS's product alone, between triangles on the diagonal that
are solved by "columns":

    X_J = T_JJ⁻¹ (α B_J − T_J,<J X_<J),   T = op(A), or op(A)ᵀ where A is on the right

Triangles of an order above LARGE are solved one after the other by cuBLAS, whatever their size.
"""

import cupy
import numpy as np

from h2gpu.arrays import moved
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, Ready, Steps, addresses, tables
from h2gpu.batched.device.limits import FEW_RESERVED_BYTES, shared_limit
from h2gpu.batched.device.plans import remembered
from h2gpu.batched.products.choice import LARGE, by_blocks, is_much
from h2gpu.batched.products.vectors import bounds_of, check_shared, knobs_of
from h2gpu.batched.products.vendor import PIECE, PREFIXES, Place, Strided, cublas

TRSM_EDGE, TRSM_FEW = 32, 4  # of a tile of kernel trsm; its right-hand sides of a block where more do not fit
PANEL_EDGE, COLUMN_THREADS = 16, 128  # of kernel trsm_columns; of a block of it at most
SHARED_BYTES = 11 << 10  # of its blocks that take several matrices, a warp in all
SPILL_BYTES = 24  # at most, by ptxas
BLOCK, SMALL_BLOCK, SMALL = 64, 32, 256  # order of theirs; in float64 of matrices below the last one


def trsm(A, B, alpha, side, lower, trans, unit):
    """See h2gpu.batched.trsm."""
    right, n = side == "right", bounds_of(A)[0]
    width, ragged = bounds_of(B)[0 if right else 1], isinstance(A, MatrixBatch)
    flags = right, bool(lower), bool(trans), bool(unit)
    if ragged and n > LARGE:
        singly = [
            trsm(a[None], b[None], alpha, side, lower, trans, unit)[0] for a, b in zip(A.matrices(), B.matrices())
        ]
        return MatrixBatch.from_matrices(singly)
    if ragged:
        A, B = A.on_host(), B.on_host()
        X = MatrixBatch.empty(B.rows, B.columns, B.dtype, cupy)
        places = A.offsets, B.offsets, B.offsets, X.offsets, A.rows, B.rows if right else B.columns
        table = moved(np.stack(places), cupy)
    else:
        X, table = cupy.empty(B.shape, B.dtype), NULL
    ready = plan(A.dtype, len(A), n, width, *flags, ragged)
    if ready:
        ready(*addresses(A, B, X), table, behind=(A.dtype.type(alpha),))
    elif X.size and is_much(len(A), n, width):
        for product, solve in blocks(A.dtype, len(A), n, width, *flags):
            if product:
                product(*((X, A) if right else (A, X)), X)
            solve(A, B, X, NULL, behind=(A.dtype.type(alpha),))
    elif X.size:
        cupy.copyto(X, B)
        solve_in_place(A, X, alpha, *flags)
    return X


@remembered
def plan(dtype, batch, n, width, right, lower, trans, unit, ragged):
    """The launch for triangles of order n, or of none larger, with so many right-hand sides; None for the vendor's."""
    row, flags = knobs_of("trsm", dtype, rows=n, columns=width), (right, lower, trans, unit)
    limit = shared_limit(cupy.cuda.Device().id, FEW_RESERVED_BYTES)
    vendor = row["method"] == "vendor" or n > LARGE or by_blocks(batch, n, width)
    if vendor and cublas and not ragged:
        return None
    if row["method"] == "columns" and width and columns_bytes(dtype, n, 1) <= limit:
        places = Place(0, n, n * n), Place(0, n if right else width, n * width)
        return _columns(dtype, batch, n, width, flags, places, min(width, row["columns"]), ragged)
    columns, warps = (TRSM_FEW, 1) if row["method"] == "columns" else (row["columns"], row["warps"])
    if trsm_bytes(dtype, n, columns) > limit:
        columns, warps = TRSM_FEW, 1
    shared, pieces = trsm_bytes(dtype, n, columns), -(-width // columns)
    check_shared("trsm", shared, n)
    function = kernel("systems/trsm.cuh", "trsm", dtype, columns, warps, *flags, shared_bytes=shared)
    return Ready(function, batch * pieces if n else 0, warps * WARP, shared, (np.int64(batch), n, width, pieces))


def _columns(dtype, batch, n, width, flags, places, most, alone=False, sums=False):
    """The launch of kernel `trsm_columns`; places: of triangles of order n, and of right-hand sides."""
    each, wide = columns_shape(dtype, n, most, shared_limit(cupy.cuda.Device().id, FEW_RESERVED_BYTES))
    each, pieces = 1 if alone else each, -(-width // wide)
    shared, threads = each * columns_bytes(dtype, n, wide), -(-each * wide // WARP) * WARP
    function = kernel("systems/trsm.cuh", "trsm_columns", dtype, *flags, shared_bytes=shared)
    numbers = [(np.int64(place.first), np.int64(place.step), place.pitch) for place in places]
    numbers = np.int64(batch), n, width, pieces, each, wide, *sum(numbers, ()), np.bool_(sums)
    return Ready(function, -(-batch // each) * pieces if n else 0, threads, shared, numbers)


@remembered
def blocks(dtype, batch, n, width, right, lower, trans, unit):
    """Steps of `trsm` by blocks, in the order of solution: T_J,<J X_<J into X_J, if any, and the launch for X_J."""
    flags, forward, found = (right, lower, trans, unit), lower == (trans == right), []
    pitch, most = (n if right else width), min(width, COLUMN_THREADS)
    edge = SMALL_BLOCK if dtype == np.float64 and n < SMALL else BLOCK
    starts = range(0, n, edge)
    for begin in starts if forward else reversed(starts):
        order = min(edge, n - begin)
        solved, count = (0, begin) if forward else (begin + order, n - begin - order)
        own, known = (Place(row if right else row * width, pitch, n * width) for row in (begin, solved))
        across = (solved, begin) if trans != right else (begin, solved)  # of A
        factor, product = Place(across[0] * n + across[1], n, n * n), None
        if count and right:
            product = Strided(dtype, batch, (width, order, count), False, trans, (1, 0), (known, factor, own))
        elif count:
            product = Strided(dtype, batch, (order, width, count), trans, False, (1, 0), (factor, known, own))
        places = Place(begin * (n + 1), n, n * n), own
        launch = _columns(dtype, batch, order, width, flags, places, most, sums=product is not None)
        found.append((product, launch))
    return found


def trsm_bytes(dtype, n, columns):
    """Shared memory of a block of kernel `trsm`."""
    return ((n + TRSM_EDGE) * columns + 2 * TRSM_EDGE * (TRSM_EDGE + 1)) * dtype.itemsize


def columns_bytes(dtype, n, columns):
    """Shared memory of a matrix for kernel `trsm_columns`."""
    tiles = -(-n // PANEL_EDGE)
    panels = (2 if tiles > 1 else 1) * tiles * PANEL_EDGE * (PANEL_EDGE + PIECE // dtype.itemsize)
    return (-(-(panels + n * (columns | 1)) * dtype.itemsize // PIECE) | 1) * PIECE


def columns_shape(dtype, n, most, limit):
    """(matrices of a block, columns of each) of kernel `trsm_columns`: as many of `most` columns as fit in `limit`."""
    wide = most
    while wide > 1 and columns_bytes(dtype, n, wide) > limit:
        wide = -(-wide // 2)
    return max(1, min(WARP // wide, SHARED_BYTES // columns_bytes(dtype, n, wide))), wide


def solve_in_place(A, X, alpha, right, lower, trans, unit):
    """X_b ← α op(A_b)⁻¹ X_b, or α X_b op(A_b)⁻¹, of stacks by cuBLAS: large ones one after the other."""
    steps = [Steps(M[0].nbytes, M.data.ptr) for M in (A, X)]
    if A.shape[-1] <= LARGE:
        (triangles,), (places,) = tables(len(X), *([step] for step in steps))
        solve_at(triangles, places, X, alpha, right, lower, trans, unit)
        return
    _, rows, columns = X.shape
    how, order, factor = _flags(right, lower, trans, unit), A.shape[-1], np.array([alpha], X.dtype)
    one, handle = getattr(cublas, f"{PREFIXES[X.dtype.name]}trsm"), cupy.cuda.device.get_cublas_handle()
    for b in range(len(X)):
        triangle, place = (step.first + b * step.size for step in steps)
        one(handle, *how, columns, rows, factor.ctypes.data, triangle, order, place, columns)


def solve_at(triangles, places, X, alpha, right, lower, trans, unit):
    """The same of all at once, by tables on the device of the addresses of A_b and X_b."""
    batch, rows, columns = X.shape
    how, order, factor = _flags(right, lower, trans, unit), columns if right else rows, np.array([alpha], X.dtype)
    all_at_once, handle = getattr(cublas, f"{PREFIXES[X.dtype.name]}trsmBatched"), cupy.cuda.device.get_cublas_handle()
    sizes = columns, rows, factor.ctypes.data, triangles.data.ptr, order, places.data.ptr, columns, batch
    all_at_once(handle, *how, *sizes)


def _flags(right, lower, trans, unit):
    """cuBLAS's matrices lie by columns: it solves the transposed systems."""
    return (
        cublas.CUBLAS_SIDE_LEFT if right else cublas.CUBLAS_SIDE_RIGHT,
        cublas.CUBLAS_FILL_MODE_UPPER if lower else cublas.CUBLAS_FILL_MODE_LOWER,
        cublas.CUBLAS_OP_T if trans else cublas.CUBLAS_OP_N,
        cublas.CUBLAS_DIAG_UNIT if unit else cublas.CUBLAS_DIAG_NON_UNIT,
    )
