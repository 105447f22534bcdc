"""out_b = α op(A_b) op(B_b) + β C_b on the GPU: one of our kernels, or cuBLAS for one shape where a tuning row says so.

"fixed": sizes known to the compiler (fixed.py); "tiles": known at run time, and ragged batches;
"redirected": ragged batches of matrices up to 80, a block each, up to 40 a warp each; "vendor": cuBLAS.
Few columns, or few rows against a transposed factor, go to thin.py. Complex numbers have no kernel for "tiles".
"""

import cupy
import numpy as np

from h2gpu.batched.core.matrix_batch import MatrixBatch, ResidentBatch
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, Ready, Tiling, addresses, launch, tiling, upload
from h2gpu.batched.device.plans import remembered
from h2gpu.batched.products import fixed, thin
from h2gpu.batched.products.choice import chosen
from h2gpu.batched.products.vendor import vendor_product

THREADS = 128  # GEMM_THREADS of the kernel
PITCH, STAGES = 20, 3  # of the kernel: row pitch and slabs in shared memory
EDGES = (16, 32, 48, 64, 80)  # tile edges
FULL = 64  # edge of the tiles of matrices beyond the largest edge
EDGE_PAD = 4  # of redirected_gemm and packed_gemm: entries between rows in shared memory
REDIRECTED_MANY = 64  # of the same: edge from which it has twice the threads
PACKED_WARPS, PACKED = 4, ((16, 4), (24, 3), (32, 2), (40, 2))  # of packed_gemm: (edge, whole pairs)
SAMPLE = 4096  # sizes looked at to choose the tile
FEW = 256  # matrices that all fit the tile
UNIFORM = (NULL,) * 7  # the lists of a batch of one shape
COVERED = 0.9  # of the matrices fit the tile in one piece, where that is possible


def tile_edge(sizes, bound):
    """The edge of the tiles along one dimension: the least that covers most matrices whole (or all, on the device)."""
    size = bound
    if len(sizes) > FEW and isinstance(sizes, np.ndarray):
        some = sizes[:: 1 + len(sizes) // SAMPLE]
        size = int(np.partition(some, k := int(COVERED * (len(some) - 1)))[k])
    if size > EDGES[-1]:  # as even pieces as possible
        size = -(-size // -(-size // FULL))
    return next(edge for edge in EDGES if size <= edge)


def shared_bytes(dtype, edges):
    """Shared memory of a block."""
    return STAGES * sum(edges) * PITCH * np.dtype(dtype).itemsize


def sampled(A, Omega):
    """See h2gpu.batched.cpu.sampled: all rows are one matrix."""
    (batch, m, n), count = A.shape, Omega.shape[1]
    sizes = 1, batch * m, n, count
    if thin.suits_sizes(A.dtype, sizes) and thin.aligned(A, Omega):
        return thin.multiply(A, Omega, sizes, (batch, m, count), short=True)
    rows = gemm(A.reshape(1, batch * m, n), Omega[None], None, 1, 0, False, False, None)
    return rows.reshape(batch, m, count)


def gemm(A, B, C, alpha, beta, transa, transb, out, method="auto", triangular=False):
    """See h2gpu.batched.gemm."""
    C = C if beta != 0 else None
    beta = beta if C is not None else 0
    if isinstance(A, MatrixBatch):
        if out is None:
            rows, columns = (A.columns if transa else A.rows), (B.rows if transb else B.columns)
            limits = A.bounds[1 if transa else 0], B.bounds[0 if transb else 1]
            out = MatrixBatch.empty(rows, columns, A.dtype, cupy, limits)
        return _ragged(A, B, C, alpha, beta, transa, transb, out, method, triangular)
    m, k = A.shape[:0:-1] if transa else A.shape[1:]
    n = B.shape[1 if transb else 2]
    plain = method == "auto" and C is None and alpha == 1 and thin.aligned(A, B)
    way = way_of(A.dtype, len(A), (m, n, k), bool(transa), bool(transb), method, plain)
    if way is thin:
        factors = (B, A, False) if transb else (A, B, transa)
        return thin.thin_product(*factors, out, turned=bool(transb))
    if way is None:
        return vendor_product(A, B, C, alpha, beta, transa, transb, out)
    out = cupy.empty((len(A), m, n), A.dtype) if out is None else out
    C = NULL if C is None else cupy.ascontiguousarray(C)
    way(A, B, C, out, behind=(A.dtype.type(alpha), A.dtype.type(beta)))
    return out


@remembered
def way_of(dtype, batch, sizes, transa, transb, method, plain):
    """What multiplies matrices of one shape: a launch, `thin`, or None for the vendor's.

    sizes   (m, n, k)     plain   nothing but the product is asked for, of arrays that are `thin.aligned`
    """
    m, n, k = sizes
    if plain and dtype.kind == "f":
        if not transb and thin.suits_sizes(dtype, (batch, m, k, n), transa):
            return thin
        if transb and not transa and thin.suits_sizes(dtype, (batch, n, k, m)):
            return thin
    method = chosen(dtype, batch, sizes, transa or transb) if method == "auto" else method
    if method == "fixed" and fixed.plan(dtype, *sizes, transa, transb):
        return fixed.ready(dtype, batch, *sizes, transa, transb)
    if method == "vendor" or dtype.kind == "c":
        return None
    edges = tile_edge((), m), tile_edge((), n)
    each = -(-m // edges[0]) * -(-n // edges[1])
    return _tiled(edges, dtype, transa, transb, Tiling(each * batch, each), (*UNIFORM, m, n, k))


def _ragged(A, B, C, alpha, beta, transa, transb, out, method, triangular):
    if A.dtype.kind == "c":
        raise ValueError("gemm: complex matrices of differing sizes are multiplied on the CPU alone; use .to(numpy)")
    batches = [A, B, A if C is None else C, out]
    if any(isinstance(M, ResidentBatch) for M in batches) or all(M.is_placed for M in batches):
        lists = [*(M.number(0) for M in batches), out.number(1), out.number(2), A.number(1 if transa else 2)]
    else:
        lists = upload(*(M.offsets for M in batches), out.rows, out.columns, A.rows if transa else A.columns)
    buffers = addresses(A, B, C, out)
    largest = max(*out.bounds, A.bounds[0 if transa else 1])
    if method in ("auto", "redirected") and largest <= EDGES[-1]:
        run = _run_packed if largest <= PACKED[-1][0] else run_redirected
        run(largest, A.dtype, transa, transb, buffers, lists, alpha, beta)
        return out
    edges = tuple(map(tile_edge, (out.rows, out.columns), out.bounds))
    tiles, sizes = tiling(out, edges), (*lists, 0, 0, 0)
    ready = _tiled(edges, A.dtype, bool(transa), bool(transb), tiles, sizes, triangular and not transa)
    ready(*buffers, behind=(A.dtype.type(alpha), A.dtype.type(beta)))
    return out


def run_redirected(largest, dtype, transa, transb, buffers, lists, alpha, beta, beyond=0):
    """Matrices of no more than `largest` rows, columns and inner indices; beyond: products/block/edge_copies.cuh."""
    edge = next(edge for edge in EDGES if largest <= edge)
    shared = edge_bytes(dtype, edge)
    instance = dtype, edge, bool(transa), bool(transb), beyond
    function = kernel("products/redirected_gemm.cuh", "redirected_gemm", *instance, shared_bytes=shared)
    arguments = *buffers, *lists, dtype.type(alpha), dtype.type(beta)
    launch(function, len(lists[0]), THREADS if edge < REDIRECTED_MANY else 2 * THREADS, arguments, shared)


def edge_bytes(dtype, edge):
    """Shared memory of two factors of at most edge × edge, for redirected_gemm."""
    return 2 * edge * (edge + EDGE_PAD) * dtype.itemsize


def packed_bytes(dtype, edge, whole):
    """Shared memory of a block of packed_gemm: so many whole pairs of factors, and a number of each warp."""
    return whole * edge_bytes(dtype, edge) + PACKED_WARPS * np.dtype(np.int32).itemsize


def _run_packed(largest, dtype, transa, transb, buffers, lists, alpha, beta):
    """The same, a warp each."""
    edge, whole = next(pair for pair in PACKED if largest <= pair[0])
    shared = packed_bytes(dtype, edge, whole)
    instance = dtype, edge, whole, bool(transa), bool(transb)
    function = kernel("products/packed_gemm.cuh", "packed_gemm", *instance, shared_bytes=shared)
    batch = len(lists[0])
    arguments = *buffers, *lists, np.int64(batch), dtype.type(alpha), dtype.type(beta)
    launch(function, -(-batch // PACKED_WARPS), PACKED_WARPS * WARP, arguments, shared)


def _tiled(edges, dtype, transa, transb, tiles, sizes, upper=False):
    """The launch of method "tiles"."""
    shared = shared_bytes(dtype, edges)
    function = kernel("products/gemm.cuh", "gemm", dtype, *edges, transa, transb, shared_bytes=shared)
    return Ready(function, tiles.blocks, THREADS, shared, (*sizes, *tiles.arguments, np.bool_(upper)))
