"""out_b = α op(A_b) op(B_b) + β C_b on the GPU: our kernel, or cuBLAS for one shape where a tuning row says so."""

import cupy
import numpy as np

from h2gpu.batched import tuning
from h2gpu.batched.launch import launch, tile_count, tile_owners, upload
from h2gpu.batched.modules import kernel
from h2gpu.batched.ragged import MatrixBatch, offsets_of

THREADS = 128  # GEMM_THREADS of the kernel
SLAB, PITCH, STAGES = 16, 20, 3  # of the kernel: inner indices a slab, row pitch and slabs in shared memory
EDGES = (16, 32, 48, 64, 80)  # tile edges
EXCESS = 32  # the vendor's routines lose speed just above multiples of it
FULL = 64  # edge of the tiles of matrices beyond the largest edge
SAMPLE = 4096  # sizes looked at to choose the tile
COVERED = 0.9  # of the matrices fit the tile in one piece, where that is possible


def tile_edge(sizes):
    """The edge of the tiles along one dimension: the least that covers most matrices whole."""
    if not len(sizes):
        return EDGES[0]
    some = sizes[:: 1 + len(sizes) // SAMPLE]
    size = int(np.partition(some, k := int(COVERED * (len(some) - 1)))[k])
    if size > EDGES[-1]:  # as even pieces as possible
        size = -(-size // -(-size // FULL))
    return next(edge for edge in EDGES if size <= edge)


def shared_bytes(dtype, edges):
    """Shared memory of a block."""
    return STAGES * sum(edges) * PITCH * np.dtype(dtype).itemsize


def gemm(A, B, C, alpha, beta, transa, transb, out):
    """See h2gpu.batched.gemm."""
    C = C if beta != 0 else None
    if isinstance(A, MatrixBatch):
        rows, columns = (A.columns if transa else A.rows), (B.rows if transb else B.columns)
        out = MatrixBatch.empty(rows, columns, A.dtype, cupy) if out is None else out
        return _ragged(A, B, C, alpha, beta, transa, transb, out)
    m, k = A.shape[:0:-1] if transa else A.shape[1:]
    n = B.shape[1 if transb else 2]
    size = max(m, n, k)
    if tuning.row("gemm", A.dtype, size=size, excess=(size - 1) % EXCESS + 1)["vendor"]:
        return _vendor(A, B, C, alpha, beta, transa, transb)
    out = cupy.empty((len(A), m, n), A.dtype)
    edges = tile_edge(np.array([m])), tile_edge(np.array([n]))
    tiles = -(-m // edges[0]) * -(-n // edges[1]) * len(A)
    null = np.uint64(0)
    C = null if C is None else cupy.ascontiguousarray(C)
    _run(edges, A.dtype, transa, transb, tiles, A, B, C, out, (null, null, np.int64(len(A)), m, n, k), alpha, beta)
    return out


def _ragged(A, B, C, alpha, beta, transa, transb, out):
    edges = tile_edge(out.rows), tile_edge(out.columns)
    counts = tile_count(out.rows, edges[0]) * tile_count(out.columns, edges[1])
    inner = A.rows if transa else A.columns
    batch, first = len(A), offsets_of(counts)
    starts = A.offsets, B.offsets, A.offsets if C is None else C.offsets, out.offsets
    table = upload(*starts, out.rows, out.columns, inner, first)
    owner = tile_owners(counts, table[-1])
    C = np.uint64(0) if C is None else C.buffer
    sizes = (table[0], owner, np.int64(batch), 0, 0, 0)
    _run(edges, A.dtype, transa, transb, int(first[-1]), A.buffer, B.buffer, C, out.buffer, sizes, alpha, beta)
    return out


def _run(edges, dtype, transa, transb, tiles, A, B, C, out, sizes, alpha, beta):
    shared = shared_bytes(dtype, edges)
    function = kernel("batched/gemm.cuh", "gemm", dtype, *edges, bool(transa), bool(transb), shared_bytes=shared)
    scalars = dtype.type(alpha), dtype.type(beta)
    launch(function, tiles, THREADS, (A, B, C, out, *sizes, *scalars), shared)


def _vendor(A, B, C, alpha, beta, transa, transb):
    out = cupy.matmul(A.swapaxes(1, 2) if transa else A, B.swapaxes(1, 2) if transb else B)
    if alpha != 1:
        out *= alpha
    if C is not None:
        out += beta * C
    return out
