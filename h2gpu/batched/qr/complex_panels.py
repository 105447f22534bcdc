"""Q_b R_b = A_b of complex matrices on the GPU: kernels/qr/complex_qr.cuh, a thread block a matrix, panel by panel.

R alone of matrices of which a multiprocessor holds RESIDENT is made in shared memory; others stay in device memory, or
where Q goes, and their panels come, as long as one fits. One matrix held took 1.17 times as long, 80 × 16 with Q 1.15.
Matrices of a ragged batch are launched in classes of place and warps.
"""

import cupy
import numpy as np

from h2gpu.arrays import moved
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.core.size_classes import classes
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, addresses, launch
from h2gpu.batched.device.limits import shared_limit

WIDTH = 8  # columns of a panel
STRIP = 8  # columns that a warp updates
MOST_WARPS = 8  # of a thread block
WIDE = 16  # bytes that a thread reads at once
PLACES = ("inside", "panel", "outside")
INSIDE, PANEL_INSIDE, OUTSIDE = range(3)
RESIDENT = 2  # matrices that a multiprocessor shall hold in shared memory, or they do not go there
SPILL_BYTES = {"complex64": 0, "complex128": 68}  # at most, with registers for RESIDENT thread blocks of MOST_WARPS


def qr(A, mode, out=None, resident=None):
    """See h2gpu.batched.qr. resident: matrices that a multiprocessor shall hold in shared memory; infinite: none."""
    if resident is None:
        resident = RESIDENT if mode == "r" else np.inf
    ragged = isinstance(A, MatrixBatch)
    batch = A if ragged else MatrixBatch.from_stack(cupy.ascontiguousarray(A))
    m, n = batch.rows, batch.columns
    k = np.minimum(m, n)
    R = MatrixBatch.empty(k, n, A.dtype, cupy) if out is None else out
    Q = MatrixBatch.empty(m, k, A.dtype, cupy) if mode == "reduced" else None
    for these in classes(m, n, lambda rows, columns: _keys(A.dtype, rows, columns, resident)):
        _run(*(None if M is None else M[these.members] for M in (batch, Q, R)), *these.keys.tolist())
    if not ragged:
        R, Q = (None if M is None else M.buffer.reshape(len(A), *shape) for M, shape in _shapes(A, R, Q))
    return R if Q is None else (Q, R)


def _shapes(A, R, Q):
    m, n = A.shape[1:]
    return (R, (min(m, n), n)), (Q, (m, min(m, n)))


def _keys(dtype, m, n, resident):
    """Place and warps of each size m × n."""
    return np.stack([places(dtype, m, n, resident), warps(m, n)]).astype(np.int64)


def places(dtype, m, n, resident=RESIDENT):
    """Where the matrices and their panels lie, an index into PLACES each."""
    limit = shared_limit(cupy.cuda.runtime.getDevice())
    held = resident * shared_bytes(dtype, INSIDE, m, n) <= limit
    return np.where(held, INSIDE, np.where(shared_bytes(dtype, PANEL_INSIDE, m, n) <= limit, PANEL_INSIDE, OUTSIDE))


def warps(m, n):
    """Of the thread block of a matrix: a thread a row, a warp a strip."""
    return np.clip(np.maximum(-(-m // WARP), -(-n // STRIP)), 1, MOST_WARPS)


def parts_bytes(dtype):
    """Of ComplexPanel::Parts: T, M, pivots; sums of the warps; exponents."""
    scalars = 2 * WIDTH * WIDTH + 2 * WIDTH + MOST_WARPS * 2 * WIDTH
    return scalars * np.dtype(dtype).itemsize + MOST_WARPS * np.dtype(np.int32).itemsize


def pitch(dtype):
    """Entries of a row of a panel."""
    return WIDTH + WIDE // np.dtype(dtype).itemsize


def shared_bytes(dtype, place, m, n):
    """Shared memory of a thread block."""
    held = 0 * m if place == OUTSIDE else m * pitch(dtype) + (m * n if place == INSIDE else 0)
    return parts_bytes(dtype) + held * np.dtype(dtype).itemsize


def _run(A, Q, R, place, count):
    """Launch the matrices of one place, and warps of a thread block."""
    m, n, dtype = A.rows, A.columns, A.dtype
    shared = int(np.max(shared_bytes(dtype, place, m, n)))
    W = panels = None
    if place != INSIDE:  # Q has room for the work where it has all columns
        W = Q if Q is not None and (m >= n).all() else MatrixBatch.empty(m, n, dtype, cupy)
    tallest = int(m.max())
    if place == OUTSIDE:
        panels = cupy.empty(len(A) * tallest * pitch(dtype), dtype)
    batches, table, shape = (A, Q, R, W), NULL, (tallest, int(n.max()))
    if (m == m[0]).all() and (n == n[0]).all() and all(M.is_packed for M in batches if M is not None):
        batches = [None if M is None else M.buffer[int(M.offsets[0]) :] for M in batches]
    else:
        offsets = [0 * m if M is None else M.offsets for M in batches]
        table = moved(np.stack([*offsets, m, n], axis=1).astype(np.int64), cupy)
    function = kernel("qr/complex_qr.cuh", "complex_qr", dtype, WIDTH, place, shared_bytes=shared)
    arguments = (*addresses(*batches), NULL if panels is None else panels, table, *shape, tallest)
    launch(function, len(A), count * WARP, arguments, shared)
