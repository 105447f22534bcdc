"""LAPACK's LU, QR and GEBRD of many small matrices on all cores of the host: a process a core, loops without Python.

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

SPAN = 0.05  # seconds of a measurement, about
CALLS = 3  # of which the fastest counts
LETTERS = {"float64": "d", "float32": "s"}


def milliseconds(routine, A, processes=None):
    """Milliseconds of "lu", "qr" or "gebrd" of all matrices of A (batch, m, n), which stays as it is; how many cores.

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
    """One process: matrices come, then how often to factor them."""
    with threadpool_limits(1):
        while True:
            try:
                task = connection.recv()
            except EOFError:
                return
            if isinstance(task, tuple):
                routine, A = task
                work = {"lu": np.linalg.slogdet, "qr": raw_qr, "gebrd": gebrd}[routine]
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


def gebrd(A):
    """d (batch, n) and e (batch, n − 1) of the Aᵀ of A (batch, n, n)."""
    W = A.copy()
    batch, n, size = *W.shape[:2], W.itemsize
    d, e, room = (np.empty(shape, A.dtype) for shape in ((batch, n), (batch, n), 66 * n))
    order, length, info = (ctypes.byref(ctypes.c_int(value)) for value in (n, 64 * n, 0))
    taus = [room.ctypes.data + place * n * size for place in range(3)]  # τ of either side, and workspace
    call, first = _gebrd(A.dtype.name), (W.ctypes.data, d.ctypes.data, e.ctypes.data)
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


@cache
def _gebrd(dtype):
    """LAPACK's function as SciPy has linked it: scipy.linalg.lapack wraps no GEBRD."""
    from scipy.linalg import cython_lapack

    capsule, python = cython_lapack.__pyx_capi__[LETTERS[dtype] + "gebrd"], ctypes.pythonapi
    python.PyCapsule_GetName.restype, python.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = python.PyCapsule_GetPointer(capsule, python.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 11)(address)
