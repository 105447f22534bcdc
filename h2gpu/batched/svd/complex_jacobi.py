"""Singular value decompositions of complex matrices on the GPU by one-sided Jacobi: kernels/svd/complex_svd.cuh.

    X V = U_X Σ,   X = A or Aᴴ, as many rows as columns or more

Matrices are grouped by what a thread block needs; a group is one launch, a thread block a matrix. Columns lie in shared
memory, larger ones in device memory, some matrices at a time. Nothing is read back but the verdicts.
"""

import cupy
import numpy as np

from h2gpu.arrays import moved
from h2gpu.batched.copies.verdicts import check
from h2gpu.batched.core.checks import precision
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.size_classes import classes
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, addresses, launch
from h2gpu.batched.device.limits import shared_limit

LAYOUTS = ((8, 4), (32, 2), (32, 4), (32, 8))  # lanes that share a pair of columns, entries of each that a lane holds
SWEEPS = 40  # never met: 6 to 12 as a rule
MOST_WARPS = 16  # of a thread block: COMPLEX_WARPS of the kernel
ALIGN, INTEGER = 16, 4  # bytes
WORKSPACE_BYTES = 2 << 30  # of device memory at a time
SPILL_BYTES = {"complex64": 96, "complex128": 24}  # at most, with registers for MOST_WARPS


def svd(A, vectors, return_info=False):
    """See h2gpu.batched.svd."""
    ragged = isinstance(A, MatrixBatch)
    batch = A if ragged else MatrixBatch.from_stack(cupy.ascontiguousarray(A))
    m, n, dtype = batch.rows, batch.columns, A.dtype
    k = np.minimum(m, n)
    U = None if vectors == "none" else MatrixBatch.empty(m, k, dtype, cupy)
    s = MatrixBatch.empty(k, 1, precision(dtype), cupy)
    Vt = MatrixBatch.empty(k, n, dtype, cupy) if vectors == "both" else None
    info = cupy.zeros(len(A), np.int32)
    for these in classes(m, n, lambda rows, columns: _keys(dtype, rows, columns, vectors)):
        for piece in _pieces(these, dtype, vectors):
            _run((batch, U, s, Vt), piece, info, vectors, *these.keys[1:3].tolist())
    if not ragged:
        shapes = (m, k), (k, np.ones_like(k)), (k, n)
        U, s, Vt = (
            None if M is None else M.buffer.reshape(len(A), *(int(side[0]) if len(A) else 0 for side in shape))
            for M, shape in zip((U, s, Vt), shapes)
        )
    results = tuple(M for M in (U, s, Vt) if M is not None)
    if return_info:
        return *results, info
    check(info)
    return results if len(results) > 1 else s


def _keys(dtype, m, n, vectors):
    """Whether V is wanted with X, layout, warps, and whether all lies in shared memory, of each size m × n."""
    longer, rank, both = np.maximum(m, n), np.minimum(m, n), accumulates(m, n, vectors)
    layout = np.searchsorted([lanes * held for lanes, held in LAYOUTS[:-1]], longer)
    inside = shared_bytes(dtype, longer, rank, both) <= shared_limit(cupy.cuda.runtime.getDevice())
    lanes = np.array([lanes for lanes, _ in LAYOUTS])[layout]
    layout = np.where(inside, layout, len(LAYOUTS) - 1)
    return np.stack([both, layout, np.where(inside, 1, -1) * warps(rank, np.where(inside, lanes, WARP))]).astype(
        np.int64
    )


def accumulates(m, n, vectors):
    """Whether the vectors of both sides of X are asked for: of a wide matrix the left ones are the right ones of X."""
    return (m < n) if vectors == "left" else np.full(np.shape(m), vectors == "both")


def warps(rank, lanes):
    """Of a thread block: for all pairs at once, or as many in each of few turns."""
    needed = np.maximum(1, -(-((rank + 1) // 2 * lanes) // WARP))
    return -(-needed // -(-needed // MOST_WARPS))


def column_entries(longer, rank, both):
    """Entries of X, and V behind it, with odd leading dimensions."""
    return rank * ((longer + np.where(both, rank, 0)) | 1)


def beside_bytes(dtype, longer, rank):
    """Shared memory beside the columns."""
    size, real = np.dtype(dtype).itemsize, precision(dtype).itemsize
    bytes_ = rank * size + (2 * rank + longer) * real + (rank + MOST_WARPS) * INTEGER
    return -(-bytes_ // ALIGN) * ALIGN


def shared_bytes(dtype, longer, rank, both):
    """Shared memory of a thread block whose columns lie there."""
    return beside_bytes(dtype, longer, rank) + column_entries(longer, rank, both) * np.dtype(dtype).itemsize


def _pieces(these, dtype, vectors):
    """Members of a class that are launched together: all of them, unless their columns need device memory."""
    if these.keys[2] > 0:
        return [these.members]
    longer, rank = np.maximum(these.rows, these.columns), np.minimum(these.rows, these.columns)
    room = int(column_entries(longer, rank, bool(these.keys[0])).max()) * np.dtype(dtype).itemsize
    most = max(1, WORKSPACE_BYTES // room)
    members = np.arange(these.count) if isinstance(these.members, slice) else these.members
    return [members[first : first + most] for first in range(0, these.count, most)]


def _run(batches, members, info, vectors, layout, signed_warps):
    """Launch some matrices of one class."""
    which = np.arange(len(info))[members]
    batches = [None if M is None else M[members] for M in batches]
    A = batches[0]
    m, n, dtype, inside = A.rows, A.columns, A.dtype, signed_warps > 0
    longer, rank, both = np.maximum(m, n), np.minimum(m, n), accumulates(m, n, vectors)
    room = 0 if inside else int(column_entries(longer, rank, both).max())
    W = NULL if inside else cupy.empty(len(A) * room, dtype)
    needed = shared_bytes(dtype, longer, rank, both) if inside else beside_bytes(dtype, longer, rank)
    shared, (lanes, held) = int(needed.max()), LAYOUTS[layout]
    offsets = [0 * m if M is None else M.offsets for M in batches]
    table = moved(np.stack([*offsets, m, n, which], axis=1).astype(np.int64), cupy)
    function = kernel("svd/complex_svd.cuh", "complex_svd", dtype, lanes, held, inside, shared_bytes=shared)
    arguments = (*addresses(*batches), W, info, table, 0, 0, np.int64(room), SWEEPS)
    launch(function, len(A), abs(signed_warps) * WARP, arguments, shared)
