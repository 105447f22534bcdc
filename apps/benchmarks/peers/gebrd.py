"""GEBRD by others: cuSOLVER's, which takes one matrix, looped over streams, and LAPACK's on all cores of the host.

cuSOLVER would take a second for some batches, LAPACK minutes: then fewer matrices are timed, and their time is scaled.
"""

import ctypes
import time
from functools import cache

import numpy as np

from h2gpu.apps.benchmarks.peers.peers import Peer
from h2gpu.arrays import to_host
from h2gpu.batched.device.threads import parallel

STREAMS = 8
LOOPED = 64  # matrices of cuSOLVER's loop that are timed at most
HOST_WORK = 1 << 31  # n³ of the matrices that LAPACK is timed with, about
LETTERS = {"float64": "d", "float32": "s"}


def times(arrays):
    """The Peers of (batch, n, n) CuPy arrays in rotation."""
    return [cusolver(arrays[0]), lapack(arrays[0])]


def cusolver(A):
    """A loop over the matrices, one stream after another."""
    import cupy
    from cupy_backends.cuda.libs import cusolver as library

    count, n = min(len(A), LOOPED), A.shape[-1]
    letter = LETTERS[A.dtype.name]
    gebrd = getattr(library, letter + "gebrd")
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(STREAMS)]
    handles = [library.create() for _ in streams]
    for handle, stream in zip(handles, streams):
        library.setStream(handle, stream.ptr)
    size = getattr(library, letter + "gebrd_bufferSize")(handles[0], n, n)
    room = cupy.empty((STREAMS, size + 4 * n), A.dtype)  # d, e, both τ, workspace
    info = cupy.empty(STREAMS, np.int32)

    def loop():
        W = A[:count].copy()
        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        for b in range(count):
            s = b % STREAMS
            parts = [room[s, i * n :].data.ptr for i in range(5)]
            gebrd(handles[s], n, n, W[b].data.ptr, n, *parts, size, info[s:].data.ptr)
        cupy.cuda.Device().synchronize()
        return 1e3 * (time.perf_counter() - begin) * len(A) / count

    loop()
    ms = loop()
    for handle in handles:
        library.destroy(handle)
    return Peer(f"cusolverDn gebrd, {STREAMS} streams", ms, ms, count)


def lapack(A):
    """A matrix a thread."""
    count = int(np.clip(HOST_WORK // A.shape[-1] ** 3, 1, len(A)))
    W = to_host(A[:count]).copy()
    begin = time.perf_counter()
    parallel(gebrd, W, A.shape[-1] ** 3)
    ms = 1e3 * (time.perf_counter() - begin) * len(A) / count
    return Peer("LAPACK gebrd, CPU", ms, ms, count)


def gebrd(A):
    """d and e of Aᵀ, for A n × n in C order, by LAPACK; A is overwritten."""
    n = len(A)
    room = np.empty(4 * n + 64 * n, A.dtype)
    integers = [ctypes.byref(ctypes.c_int(value)) for value in (n, 64 * n, 0)]
    order, size, info = integers
    parts = [ctypes.c_void_p(room[i * n :].ctypes.data) for i in range(5)]
    _routine(A.dtype.name)(order, order, ctypes.c_void_p(A.ctypes.data), order, *parts, size, info)
    return room[:n], room[n : 2 * n - 1]


@cache
def _routine(dtype):
    """LAPACK's function as SciPy has linked it: scipy.linalg.lapack wraps no GEBRD."""
    from scipy.linalg import cython_lapack

    capsule, python = cython_lapack.__pyx_capi__[LETTERS[dtype] + "gebrd"], ctypes.pythonapi
    python.PyCapsule_GetName.restype, python.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = python.PyCapsule_GetPointer(capsule, python.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 11)(address)
