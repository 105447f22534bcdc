"""LAPACK's LU, QR, GEBRD and solutions of many small matrices: a process a core of the host, no Python loops.

Threads of one interpreter would wait for it between calls of microseconds. Every process has its share of the matrices
and one thread of BLAS, and factors its share again and again; all begin at one barrier, and the last
one that ends counts. LU and QR of a share are one call of NumPy's compiled loop.
"""

import atexit
import ctypes
import time
from functools import cache
from multiprocessing import get_context

import numpy as np
from threadpoolctl import threadpool_limits

from h2gpu.batched.device.threads import thread_count
from h2gpu.batched.qr.lapack import function_of

SPAN = 0.05  # seconds of a measurement, about
CALLS = 3  # of which the fastest counts
LETTERS = {"float64": "d", "float32": "s"}


def milliseconds(routine, A, processes=None):
    """Milliseconds of a routine for all matrices of A (batch, m, n), which stays as it is; how many cores.

    routine     "lu", "qr", "gebrd", "gesv" or "gels"
    processes   that share them; None: as many as there are cores, but no more than matrices
    """
    workers = _workers(min(len(A), processes or thread_count()))
    for worker, share in zip(workers, np.array_split(A, len(workers))):
        worker.send((routine, share))
    passes = max(1, round(SPAN / _together(workers, 1)))
    seconds = min(_together(workers, passes) for _ in range(CALLS)) / passes
    return 1e3 * seconds, len(workers)


def _together(workers, passes):
    """Seconds from the first process' beginning to the last one's end."""
    for worker in workers:
        worker.send(passes)
    begins, ends = zip(*(worker.recv() for worker in workers))
    return max(ends) - min(begins)


@cache
def _workers(count):
    """Connections to so many processes, which end with this one."""
    context = get_context("spawn")  # a fork would carry the GPU's state along
    barrier, found = context.Barrier(count), []
    atexit.register(barrier.abort)  # held until then: its semaphores are gone with it
    for _ in range(count):
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(there, barrier), daemon=True)
        process.start()
        there.close()
        atexit.register(here.close)
        found.append(here)
    return found


def _serve(connection, barrier):
    """One process: matrices come, then how often to factor them.

    NumPy and SciPy each have a BLAS of their own, and only what is loaded is limited: SciPy's is, with this module.
    """
    with threadpool_limits(1):
        while True:
            try:
                task = connection.recv()
            except EOFError:
                return
            if isinstance(task, tuple):
                routine, A = task
                work = {"lu": np.linalg.slogdet, "qr": raw_qr, "gebrd": gebrd, "gesv": gesv, "gels": gels}[routine]
                work(A[:1])
                continue
            barrier.wait()
            begin = time.monotonic()
            for _ in range(task):
                work(A)
            connection.send((begin, time.monotonic()))


def raw_qr(A):
    """GEQRF of each matrix. LU is slogdet: GETRF, and n logarithms."""
    return np.linalg.qr(A, mode="raw")


def gesv(A):
    """x (batch, n, 1) of A x = (1, …, 1), by LU with pivots."""
    return np.linalg.solve(A, np.ones((*A.shape[:2], 1), A.dtype))


def gels(A):
    """The same (batch, n) by QR, of A (batch, n, n)."""
    W, x = A.copy(), np.ones(A.shape[:2], A.dtype)
    batch, n, size = *x.shape, W.itemsize
    room, transposed = np.empty(66 * n, A.dtype), ctypes.byref(ctypes.c_char(b"T"))  # by columns W is Aᵀ
    order, one, length, info = (ctypes.byref(ctypes.c_int(value)) for value in (n, 1, len(room), 0))
    call, first = function_of(f"{LETTERS[A.dtype.name]}gels"), (W.ctypes.data, x.ctypes.data)
    for b in range(batch):
        places = first[0] + b * n * n * size, order, first[1] + b * n * size, order
        call(transposed, order, order, one, *places, room.ctypes.data, length, info)
    return x


def gebrd(A):
    """d (batch, n) and e (batch, n − 1) of the Aᵀ of A (batch, n, n)."""
    W = A.copy()
    batch, n, size = *W.shape[:2], W.itemsize
    d, e, room = (np.empty(shape, A.dtype) for shape in ((batch, n), (batch, n), 66 * n))
    order, length, info = (ctypes.byref(ctypes.c_int(value)) for value in (n, 64 * n, 0))
    taus = [room.ctypes.data + place * n * size for place in range(3)]  # τ of either side, and workspace
    call, first = function_of(f"{LETTERS[A.dtype.name]}gebrd"), (W.ctypes.data, d.ctypes.data, e.ctypes.data)
    for b in range(batch):
        call(
            order,
            order,
            first[0] + b * n * n * size,
            order,
            *(p + b * n * size for p in first[1:]),
            *taus,
            length,
            info,
        )
    return d, e[:, : n - 1]
