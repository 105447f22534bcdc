"""Q_b R_b = A_b on the GPU by Householder reflections: kernels/qr/householder_qr.cuh.

blocked.py takes most sizes, tall.py R alone of tall matrices, tree.py R alone of matrices with more rows than a block
holds. Few columns, and more rows than registers hold, stay here. Matrices are launched in classes of columns, so that a
ragged batch wastes few threads; the table tuning/…/qr.csv says how many rows and columns a thread holds and
where R waits. What is too large in both directions is left to the vendor.
"""

from functools import lru_cache
from typing import NamedTuple

import cupy
import numpy as np

from h2gpu.arrays import moved_together
from h2gpu.batched.core.matrix_batch import MatrixBatch
from h2gpu.batched.device import tuning
from h2gpu.batched.device.compiler import kernel
from h2gpu.batched.device.launch import NULL, WARP, launch, upload
from h2gpu.batched.qr import blocked, tall, tree

EDGES = (8, 16, 32, 64, 128, 256, 512, 1024)  # classes of columns
LEAST_ROWS = 8  # rows a thread holds, at least
ALIGN = 16  # bytes


def qr(A, mode, out=None):
    """See h2gpu.batched.qr."""
    if isinstance(A, MatrixBatch):
        return _ragged(A, mode, out)
    batch, m, n = A.shape
    k = min(m, n)
    A = cupy.ascontiguousarray(A)
    if n > EDGES[-1] and blocked.plan(cupy.cuda.Device().id, A.dtype, m, n, batch) is None:
        return _vendor(A, mode)
    R = cupy.empty((batch, k, n), A.dtype)
    Q = cupy.empty((batch, m, k), A.dtype) if mode == "reduced" else None
    if batch and Q is None and len(tree.high(A.dtype, np.array([m]), np.array([n]), batch)):
        tree.run(MatrixBatch.from_stack(A), MatrixBatch.from_stack(R), batch)
    elif batch and k:
        _run(A, Q, R, NULL, batch, m, n)
    return R if Q is None else (Q, R)


def _ragged(A, mode, out):
    k = np.minimum(A.rows, A.columns)
    R = MatrixBatch.empty(k, A.columns, A.dtype, cupy) if out is None else out
    Q = MatrixBatch.empty(A.rows, k, A.dtype, cupy) if mode == "reduced" else None
    high = () if Q is not None else tree.high(A.dtype, A.rows, A.columns, len(A))
    if len(high):
        tree.run(A[high], R[high], len(A))
        others = np.setdiff1d(np.arange(len(A)), high, assume_unique=True)
        _by_class(A[others], Q, R[others])
    else:
        _by_class(A, Q, R)
    return R if Q is None else (Q, R)


def _by_class(A, Q, R):
    """Those that a launch's blocks work on one by one, each class by itself; tables of all classes by one copy."""
    parts, batches = [], [M for M in (A, Q, R) if M is not None]
    for c, chosen in _classes(A, Q is None):
        if c >= 2 * len(EDGES):
            _vendor_each(A, Q, R, chosen)
        elif isinstance(chosen, slice) and all(M.is_packed for M in batches):  # of one shape: no table
            arrays = (None if M is None else M.buffer[int(M.offsets[0]) :] for M in (A, Q, R))
            _run(*arrays, NULL, len(A), int(A.rows[0]), int(A.columns[0]))
        else:
            parts.append([M[chosen] for M in (A, R if Q is None else Q, R)])
    for (first, *_), table in zip(parts, _tables(parts)):
        m, n = first.rows, first.columns
        _run(A.buffer, None if Q is None else Q.buffer, R.buffer, table, len(m), m, n)


def _tables(parts):
    """Offsets of A, Q and R, rows and columns of A, (5, batch) on the device for each part: A, Q and R, or R twice."""
    if all(M.is_placed for part in parts for M in part):
        return [upload(*(M.number(0) for M in part), part[0].number(1), part[0].number(2)) for part in parts]
    lines = ((*(M.offsets for M in part), part[0].rows, part[0].columns) for part in parts)
    return moved_together(cupy, *(np.array(five, np.int64) for five in lines))


def _classes(A, alone):
    """Number and members of the classes that are launched together; alone: R without Q."""
    m, n = A.rows, A.columns
    if len(A) and (m == m[0]).all() and (n == n[0]).all():
        members = [slice(None)] if m[0] and n[0] else []
        return [(int(_numbers(A.dtype, m[:1], n[:1], len(A), alone)[0]), chosen) for chosen in members]
    numbers, some = _numbers(A.dtype, m, n, len(A), alone), np.minimum(m, n) > 0
    found = []
    for c in np.unique(numbers[some]):
        chosen = np.flatnonzero((numbers == c) & some)
        blocks = -(-m[chosen] // LEAST_ROWS)  # the longest first, so that none is left to run alone at the end
        order = np.argsort(-blocks.clip(max=np.iinfo(np.int16).max).astype(np.int16), kind="stable")
        found.append((int(c), chosen[order]))
    return found


def _numbers(dtype, m, n, batch, alone):
    """The number of the class of each of the sizes m × n: even or odd by columns and tallness, others beyond."""
    is_tall = tall.is_tall(m, n)
    numbers = blocked.classes(cupy.cuda.Device().id, dtype, m, n, batch)
    if alone:
        numbers[is_tall & (n <= tall.CHAIN_EDGE)] = -1
    return np.where(numbers < 0, 2 * np.searchsorted(EDGES, n) + is_tall, -1 - numbers)


def _run(A, Q, R, table, batch, m, n):
    """Launch a kernel for matrices m × n of one class, integers with a null table, or arrays for a ragged batch."""
    tallest, widest = (m, n) if table is NULL else (int(m.max()), int(n.max()))
    if Q is None and widest <= tall.CHAIN_EDGE and np.all(tall.is_tall(m, n)):
        return tall.run(A, R, table, batch, tallest, widest)
    blocks = blocked.plan(cupy.cuda.Device().id, A.dtype, tallest, widest, batch)
    if blocks is not None:
        return blocked.run(blocks, A, Q, R, table, batch, tallest, widest)
    plan = _plan(cupy.cuda.Device().id, A.dtype, tallest, widest, batch, Q is not None)
    if table is NULL:
        entries, shape = plan.entries, (m, n)
    else:
        entries, shape = (
            int(shared_entries(A.dtype, plan.rows, m, n, plan.threads, plan.shared, Q is not None).max()),
            (0, 0),
        )
    size = entries * plan.teams * A.dtype.itemsize
    function = plan.function if table is NULL else kernel(*plan.instance, shared_bytes=size)
    arguments = (A, R if Q is None else Q, R, table, np.int64(batch), *shape, entries)
    launch(function, -(-batch // plan.teams), plan.block, arguments, size)


def run_bounded(A, R, table, batch, m, n):
    """R alone of matrices in a table whose sizes only the device knows: at most m × n, rows ≥ columns each."""
    _run(A, None, R, table, batch, np.array([m]), np.array([n]))


class Plan(NamedTuple):
    """One launch: the kernel, threads of a block; teams in it, their threads, rows a thread and shared memory."""

    instance: tuple
    function: object
    block: int
    teams: int
    threads: int
    rows: int
    shared: bool
    entries: int


@lru_cache(maxsize=1024)
def _plan(device, dtype, m, n, batch, want_q):
    """How to launch `batch` matrices of at most m × n on the current device, from the tuning table."""
    row = tuning.row("qr", dtype, columns=n, rows=m, matrices=batch)
    rows, columns, shared = (
        row["register_rows"],
        row["register_columns"],
        bool(row["shared_q" if want_q else "shared_r"]),
    )
    threads = 1 << (-(-n // columns) - 1).bit_length()  # the power of two that bounds a team
    teams = max(1, WARP // threads)
    block = WARP if threads < WARP else -(-n // (columns * WARP)) * WARP
    entries = int(shared_entries(dtype, rows, m, n, threads, shared, want_q))
    instance = ("qr/householder_qr.cuh", "householder_qr", dtype, rows, columns, threads, row["resident"], shared)
    function = kernel(*instance, want_q, shared_bytes=entries * teams * dtype.itemsize)
    return Plan((*instance, want_q), function, block, teams, threads, rows, shared, entries)


def shared_entries(dtype, rows, m, n, threads, triangle, want_q):
    """Shared memory of one matrix in entries: two reflectors in exchange, a block of them for Q, maybe the triangle."""
    align = ALIGN // dtype.itemsize
    k = np.minimum(m, n)
    entries = 0 * k + (2 * (rows + align) if threads > WARP else 0)
    if want_q:
        entries = entries + k * (rows + align) + -(-k // 4) * 4
    if triangle:
        entries = entries + k * (2 * n - k + 1) // 2
    return -(-entries // align) * align


def _vendor(A, mode):
    """cuSOLVER, matrix by matrix inside CuPy."""
    if mode == "r":
        return cupy.linalg.qr(A, mode="r")
    return tuple(cupy.linalg.qr(A, mode="reduced"))


def _vendor_each(A, Q, R, chosen):
    for b in np.arange(len(A))[chosen].tolist():
        if Q is None:
            R[b][...] = cupy.linalg.qr(A[b], mode="r")
        else:
            Q[b][...], R[b][...] = cupy.linalg.qr(A[b], mode="reduced")
