"""GEBRD by others: cuSOLVER's, which takes one matrix, looped over streams, and LAPACK's on all cores of the host.

cuSOLVER would take a second for some batches, LAPACK minutes: then fewer matrices are timed, and their time is scaled.
"""

import time

import numpy as np

from h2gpu.apps.benchmarks.peers import lapack as lapack_peer
from h2gpu.apps.benchmarks.peers.linear import LETTERS
from h2gpu.apps.benchmarks.peers.peers import Peer
from h2gpu.apps.benchmarks.peers.streams import Streams
from h2gpu.arrays import to_host

STREAMS = 8
LOOPED = 64  # matrices of cuSOLVER's loop that are timed at most
HOST_WORK = 1 << 31  # n³ of the matrices that LAPACK is timed with, about


def times(arrays):
    """The Peers of (batch, n, n) CuPy arrays in rotation."""
    return [cusolver(arrays[0]), lapack(arrays[0])]


def cusolver(A):
    """A loop over the matrices, one stream after another."""
    import cupy

    count, n = min(len(A), LOOPED), A.shape[-1]
    letter, streams = LETTERS[A.dtype.name], Streams(STREAMS)
    gebrd = getattr(streams.library, letter + "gebrd")
    size = getattr(streams.library, letter + "gebrd_bufferSize")(streams.handles[0], n, n)
    room = cupy.empty((STREAMS, size + 4 * n), A.dtype)  # d, e, both τ, workspace
    info = cupy.empty(STREAMS, np.int32)

    def loop():
        W = A[:count].copy()

        def one(handle, s, b):
            parts = [room[s, i * n :].data.ptr for i in range(5)]
            gebrd(handle, n, n, W[b].data.ptr, n, *parts, size, info[s:].data.ptr)

        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        streams.each(one, count)
        cupy.cuda.Device().synchronize()
        return 1e3 * (time.perf_counter() - begin) * len(A) / count

    loop()
    ms = loop()
    streams.close()
    return Peer(f"cusolverDn gebrd, {STREAMS} streams", ms, ms, count)


def lapack(A):
    """A process a core."""
    count = int(np.clip(HOST_WORK // A.shape[-1] ** 3, 1, len(A)))
    ms, cores = lapack_peer.milliseconds("gebrd", to_host(A[:count]))
    ms *= len(A) / count
    return Peer(f"LAPACK gebrd, processes: {cores}", ms, ms, count)
